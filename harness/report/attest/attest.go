// Package attest signs a run's verdict together with its evidence, and compares a signed verdict with the files. The
// sums in a run protect only against accidents: whoever can write to the directory can write new sums. An attestation
// binds the sums to a key.
//
// An attestation is an in-toto statement in a DSSE envelope. Its subjects are the run's plan, index and verdict and the
// manifest of each trial, which lists every file with its SHA-256. Its predicate is the verdict and the binaries.
package attest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
)

// File is an attestation's usual name in the directory of its run.
const File = "attestation.dsse.json"

// predicateType is the type of the predicate.
const predicateType = "https://relapse.dev/attestation/verdict/v1alpha1"

// payloadType is the type that an envelope gives for in-toto statements.
const payloadType = "application/vnd.in-toto+json"

// Predicate is what is attested in addition to the run's files.
type Predicate struct {
	Verdict  string `json:"verdict"`
	ExitCode int    `json:"exitCode"`
	Scenario string `json:"scenario"`
	Run      string `json:"run"`
	Plan     string `json:"plan"`  // SHA-256 of plan.json
	Judge    string `json:"judge"` // the version of relapse that judged
	Arms     []Arm  `json:"arms"`  // of all trials
}

// Arm is one arm of one trial.
type Arm struct {
	Trial   string `json:"trial"`
	Pair    string `json:"pair"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	Outcome string `json:"outcome"`
	Digest  string `json:"digest"` // SHA-256 of its binary
}

func predicateOf(v judge.Verdict) Predicate {
	p := Predicate{
		Verdict: string(v.Verdict), ExitCode: v.ExitCode, Scenario: v.Scenario, Run: v.Index.Run, Plan: v.Index.Plan,
		Judge: v.Judge, Arms: []Arm{},
	}
	for _, a := range v.Arms {
		arm := Arm{
			Trial:   a.Trial,
			Pair:    a.Pair,
			Name:    a.Name,
			Role:    a.Role,
			Outcome: string(a.Outcome),
		}
		if t := v.Index.Trial(a.Trial); t != nil {
			arm.Digest = t.Arms[a.Name]
		}
		p.Arms = append(p.Arms, arm)
	}
	return p
}

// Sign returns the attestation of the run in dir: the JSON of an envelope. v is the run's verdict, and the verdict.json
// on disk must be the same. key is a private key, ed25519 or ecdsa, as PEM.
func Sign(ctx context.Context, dir string, v judge.Verdict, key []byte) ([]byte, error) {
	signer, err := privateKey(key)
	if err != nil {
		return nil, err
	}
	if err := written(dir, v); err != nil {
		return nil, err
	}
	s := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: predicateType}
	for _, name := range subjects(v) {
		sum, err := sumOf(dir, name)
		if err != nil {
			return nil, err
		}
		s.Subject = append(
			s.Subject,
			&intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}},
		)
	}
	if s.Predicate, err = asStruct(predicateOf(v)); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("making the statement: %w", err)
	}
	body, err := protojson.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the statement: %w", err)
	}
	es, err := dsse.NewEnvelopeSigner(signer)
	if err != nil {
		return nil, err
	}
	e, err := es.SignPayload(ctx, payloadType, body)
	if err != nil {
		return nil, fmt.Errorf("signing the statement: %w", err)
	}
	out, err := json.MarshalIndent(e, "", "  ")
	return append(out, '\n'), err
}

// written returns an error if the verdict on disk is not the one to be attested.
func written(dir string, v judge.Verdict) error {
	have, err := os.ReadFile(filepath.Join(dir, judge.VerdictFile))
	if err != nil {
		return fmt.Errorf("reading the verdict that is to be attested: %w", err)
	}
	want, err := v.JSON()
	if err != nil {
		return err
	}
	if string(have) != string(want) {
		return fmt.Errorf(
			"%s is not what relapse %s judges of these files: it must be judged again first",
			judge.VerdictFile,
			v.Judge,
		)
	}
	return nil
}

// subjects returns the attested files of a run, relative to its directory.
func subjects(v judge.Verdict) []string {
	names := []string{bundle.PlanFile, bundle.IndexFile, judge.VerdictFile}
	for _, t := range v.Trials {
		names = append(names, path.Join(t.Dir, bundle.ManifestFile))
	}
	return names
}

// sumOf returns the SHA-256 of a file of a run. A file outside the directory of the run is an error.
func sumOf(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	b, err := root.ReadFile(filepath.FromSlash(name))
	if err := errors.Join(err, root.Close()); err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// asStruct converts a predicate to the form in which a statement holds it.
func asStruct(p Predicate) (*structpb.Struct, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding the predicate: %w", err)
	}
	s := &structpb.Struct{}
	return s, protojson.Unmarshal(b, s)
}
