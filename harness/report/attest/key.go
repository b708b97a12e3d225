package attest

import (
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/signerverifier"
)

func privateKey(raw []byte) (dsse.SignerVerifier, error) {
	k, err := signerverifier.LoadKey(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	if k.KeyVal.Private == "" {
		return nil, errors.New("reading the private key: it is a public key, which can't sign")
	}
	return usable(k)
}

// publicKey reads a public key. It refuses a private key, because checking a signature doesn't need one.
func publicKey(raw []byte) (dsse.SignerVerifier, error) {
	k, err := signerverifier.LoadKey(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	if k.KeyVal.Private != "" {
		return nil, errors.New("reading the public key: it is a private key, which belongs to the one who signs alone")
	}
	return usable(k)
}

func usable(k *signerverifier.SSLibKey) (dsse.SignerVerifier, error) {
	switch k.KeyType {
	case signerverifier.ED25519KeyType:
		return signerverifier.NewED25519SignerVerifierFromSSLibKey(k)
	case signerverifier.ECDSAKeyType:
		return signerverifier.NewECDSASignerVerifierFromSSLibKey(k)
	}
	return nil, fmt.Errorf("the key is of the type %s: want ed25519 or ecdsa", k.KeyType)
}
