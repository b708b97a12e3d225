// Package resource reads Kubernetes resources in JSON one by one: a list may have any length, and its end may be
// missing.
package resource

import (
	"encoding/json"
	"errors"
	"io"
)

// Max bounds one resource, and a field of an object that is no list's item, in bytes. A resource in YAML takes some
// twenty times as much memory while it is read.
const Max = 4 << 20

// maxFields is how many fields are kept of an object that isn't a list's item.
const maxFields = 100

// Document reads one JSON object. It calls visit for each item of a list as soon as the item is read, and returns the
// object's other fields. An object that is cut off is an error, after the items before the cut were visited.
func Document[T any](
	d *json.Decoder,
	visit func(T),
) (fields map[string]json.RawMessage, err error) {
	switch open, err := d.Token(); {
	case err != nil:
		return nil, err
	case open != json.Delim('{'):
		return nil, errors.New("it is no object")
	}
	fields = map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, cut(err)
		}
		name, _ := key.(string)
		if name == "items" {
			if err := items(d, visit); err != nil {
				return nil, err
			}
			continue
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, cut(err)
		}
		if len(fields) < maxFields && len(raw) <= Max {
			fields[name] = raw
		}
	}
	_, err = d.Token()
	return fields, cut(err)
}

func items[T any](d *json.Decoder, visit func(T)) error {
	open, err := d.Token()
	if err != nil || open == nil { // null
		return cut(err)
	}
	if open != json.Delim('[') {
		return errors.New("its items are no list")
	}
	for d.More() {
		var one T
		if err := d.Decode(&one); err != nil {
			return cut(err)
		}
		visit(one)
	}
	_, err = d.Token()
	return cut(err)
}

// cut turns an end of the input in the middle of a value into io.ErrUnexpectedEOF.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
