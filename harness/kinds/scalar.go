package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Scalar is the text of a YAML scalar: 400, "400", true and 20s are all fine.
type Scalar string

// UnmarshalJSON reads a string unchanged, and a number or boolean as the text of its JSON.
func (s *Scalar) UnmarshalJSON(b []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		*s = Scalar(v)
	case json.Number, bool:
		*s = Scalar(fmt.Sprint(v))
	default:
		return fmt.Errorf("%s is no scalar", b)
	}
	return nil
}
