package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// DecodeStrictly decodes one JSON value into v, over what v already holds. A field that v doesn't have is an error that
// names it, because an ignored field may be the one that narrows a check. Anything after the value is an error, too.
func DecodeStrictly(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	return nil
}
