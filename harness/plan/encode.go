package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/kube-relapse/relapse/internal/printing"
)

// Encode writes p as JSON, indented by two spaces, with a newline at its end. The same plan gives the same bytes.
func Encode(p *Plan) ([]byte, error) {
	var b bytes.Buffer
	if err := printing.WriteJSON(&b, p); err != nil {
		return nil, fmt.Errorf("encoding the plan of %s: %w", p.Scenario, err)
	}
	return b.Bytes(), nil
}

// Decode reads a plan that Encode wrote and a person may have edited. Unknown fields, another schema, anything after
// the plan, and everything that Validate objects to are errors.
func Decode(b []byte) (*Plan, error) {
	p, err := Read(b)
	if err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// Sum returns the SHA-256, in hex, of the plan as Encode writes it. A run's trials refer to the plan by this sum.
func Sum(p *Plan) (string, error) {
	b, err := Encode(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
