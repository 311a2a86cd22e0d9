// Package signing signs workflow definitions and verifies their signatures (spec: cli-and-config, 15): EdDSA over the
// canonical text, as a compact JWS in document.signature or in a top-level signature member.
//
//	keys, err := signing.ParseKeys(text)
//	verdict, err := signing.Policy{Mode: signing.Require, Keys: keys}.Verify(doc)
//
// The signature is not part of what runs: Strip removes it.
package signing
