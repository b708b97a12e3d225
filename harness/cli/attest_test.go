package cli

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// evidence DIR leaves a run of one trial that shows nothing.
func evidence(ts *testscript.TestScript, _ bool, args []string) {
	planned := ""
	if len(args) > 1 {
		sum := sha256.Sum256([]byte(ts.ReadFile(args[1])))
		planned = hex.EncodeToString(sum[:])
	}
	ts.Check(makeRun(ts.MkAbs(args[0]), "", planned))
}

// keypair ed25519|ecdsa NAME leaves NAME.pem and NAME.pub.
func keypair(ts *testscript.TestScript, _ bool, args []string) {
	var private crypto.Signer
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if args[0] == "ecdsa" {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	ts.Check(err)
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]+".pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]+".pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644))
}

// tamper FILE OLD NEW replaces a text in a file that must have it.
func tamper(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	if !bytes.Contains(b, []byte(args[1])) {
		ts.Fatalf("%s has no %q:\n%s", args[0], args[1], b)
	}
	ts.Check(os.WriteFile(path, bytes.ReplaceAll(b, []byte(args[1]), []byte(args[2])), 0o644))
}
