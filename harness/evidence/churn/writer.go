package churn

import "bytes"

// wrote notes an entry of the managed fields that is new or changed.
func (d *differ) wrote(before, now []byte) {
	if before != nil && bytes.Equal(d.member1(before, "time"), d.member1(now, "time")) {
		d.touched = append(d.touched, now)
		return
	}
	d.stamped = append(d.stamped, now)
}

// member1 returns the value of one member of an object, nil if it has none of that name.
func (d *differ) member1(object []byte, name string) []byte {
	base := len(d.members)
	ms, err := members(object, d.members)
	if err != nil {
		return nil
	}
	d.members = ms[:base]
	return get(ms[base:], name)
}

// writer returns the manager and the subresource of the last write. It takes them from the newest of the managed-fields
// entries with another time, else of those that changed, else of all. Times have whole seconds: equally new entries of
// different managers tell nothing, and the result is nil.
func (d *differ) writer(object []byte) (manager, subresource []byte) {
	candidates := d.stamped
	if len(candidates) == 0 {
		candidates = d.touched
	}
	if len(candidates) == 0 {
		list := d.member1(d.member1(object, "metadata"), "managedFields")
		if list == nil {
			return nil, nil
		}
		var err error
		if d.elements, err = elements(list, d.elements[:0]); err != nil {
			return nil, nil
		}
		candidates = d.elements
	}
	var newest []byte
	known := false
	for _, c := range candidates {
		at, _ := text(d.member1(c, "time"))
		who, ok := text(d.member1(c, "manager"))
		if !ok {
			continue
		}
		through, _ := text(d.member1(c, "subresource"))
		switch newer := bytes.Compare(at, newest); { // times in RFC 3339 and UTC sort in order of time
		case !known || newer > 0:
			newest, manager, subresource, known = at, who, through, true
		case newer == 0 && !bytes.Equal(who, manager):
			manager, subresource = nil, nil
		case newer == 0 && !bytes.Equal(through, subresource):
			subresource = nil
		}
	}
	return manager, subresource
}
