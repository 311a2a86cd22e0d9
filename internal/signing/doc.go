// Package signing signs workflow definitions and verifies their signatures (spec: cli-and-config, 15): EdDSA over the
// canonical text, as a compact JWS in document.signature or a top-level signature field.
//
//	keys, err := signing.ParseKeys(text)
//	verdict, err := signing.Policy{Mode: signing.Require, Keys: keys}.Verify(doc)
//
// Definitions run without their signature: Strip removes it.
package signing
