package attest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Verify checks that an attestation was signed with the private key that belongs to key, a public key as PEM, and that
// each file that it names is unchanged. It returns the attested predicate. Predicate.Agrees checks the verdict, once
// the run was judged.
func Verify(ctx context.Context, dir string, envelope, key []byte) (Predicate, error) {
	var p Predicate
	verifier, err := publicKey(key)
	if err != nil {
		return p, err
	}
	s, err := opened(ctx, envelope, verifier)
	if err != nil {
		return p, err
	}
	if err := redacted(dir, s); err != nil {
		return p, err
	}
	if err := sameFiles(dir, s); err != nil {
		return p, err
	}
	raw, err := protojson.Marshal(s.GetPredicate())
	if err != nil {
		return p, fmt.Errorf("reading the attestation: %w", err)
	}
	if err := kinds.DecodeStrictly(raw, &p); err != nil {
		return p, fmt.Errorf("reading the attestation's predicate: %w", err)
	}
	return p, nil
}

// opened checks the signature of an envelope and returns the statement in it.
func opened(
	ctx context.Context,
	envelope []byte,
	key dsse.SignerVerifier,
) (*intoto.Statement, error) {
	var e dsse.Envelope
	if err := kinds.DecodeStrictly(envelope, &e); err != nil {
		return nil, fmt.Errorf("reading the attestation: %w", err)
	}
	v, err := dsse.NewEnvelopeVerifier(key)
	if err != nil {
		return nil, err
	}
	_, body, err := v.VerifyAndDecode(ctx, &e)
	if err != nil {
		return nil, fmt.Errorf(
			"the attestation was not signed with this key, or was changed: %w",
			err,
		)
	}
	if e.PayloadType != payloadType {
		return nil, fmt.Errorf("the attestation holds %q, want %q", e.PayloadType, payloadType)
	}
	s := &intoto.Statement{}
	if err := protojson.Unmarshal(body, s); err != nil {
		return nil, fmt.Errorf("reading the attestation's statement: %w", err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("reading the attestation's statement: %w", err)
	}
	if s.GetPredicateType() != predicateType {
		return nil, fmt.Errorf(
			"the attestation is about %q, want %q",
			s.GetPredicateType(),
			predicateType,
		)
	}
	return s, nil
}

// redacted returns an error if the run was made by redacting the attested one. An index that can't be read is left to
// sameFiles.
func redacted(dir string, s *intoto.Statement) error {
	x, err := bundle.ReadIndex(dir)
	if err != nil || x.Redacted == nil {
		return nil
	}
	for _, d := range s.GetSubject() {
		if d.GetName() == bundle.IndexFile && d.GetDigest()["sha256"] == x.Redacted.From {
			return fmt.Errorf(
				"the attestation is of the original of this run, and doesn't hold for the run itself: %s",
				x.Redacted,
			)
		}
	}
	return nil
}

// sameFiles compares the attested files with those on disk. The error names all differences.
func sameFiles(dir string, s *intoto.Statement) error {
	var errs []error
	var named []string
	for _, d := range s.GetSubject() {
		named = append(named, d.GetName())
		sum, err := sumOf(dir, d.GetName())
		switch want := d.GetDigest()["sha256"]; {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s was attested and is gone", d.GetName()))
		case err != nil:
			errs = append(errs, err)
		case sum != want:
			errs = append(
				errs,
				fmt.Errorf(
					"%s is not what was attested: SHA-256 %.12s, and was %.12s",
					d.GetName(),
					sum,
					want,
				),
			)
		}
	}
	for _, name := range []string{bundle.PlanFile, bundle.IndexFile, judge.VerdictFile} {
		if !slices.Contains(named, name) {
			errs = append(errs, fmt.Errorf("the attestation says nothing of %s", name))
		}
	}
	return errors.Join(errs...)
}

// Agrees checks that v, the run's verdict as judged now, is the attested one, and that the run lacks no file. The
// attested verdict may be by another version of relapse.
func (p Predicate) Agrees(v judge.Verdict) error {
	var errs []error
	for _, t := range v.Trials {
		for _, path := range t.Missing {
			errs = append(
				errs,
				fmt.Errorf("%s/%s was there when it was attested, and is gone", t.Dir, path),
			)
		}
	}
	now := predicateOf(v)
	now.Judge = p.Judge
	was, err := json.Marshal(p)
	if err != nil {
		return err
	}
	is, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if string(was) != string(is) {
		errs = append(errs,
			fmt.Errorf("attested is %s (exit %d), as relapse %s judged it: %s; relapse %s judges %s (exit %d): %s",
				p.Verdict, p.ExitCode, p.Judge, outcomes(p), v.Judge, now.Verdict, now.ExitCode, outcomes(now)))
	}
	return errors.Join(errs...)
}

func outcomes(p Predicate) string {
	var out string
	for i, a := range p.Arms {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%s %s %s", a.Trial, a.Name, a.Outcome)
	}
	return out
}
