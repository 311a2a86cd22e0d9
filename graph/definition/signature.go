package definition

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// stripSignatures returns the document without its well-formed signature blocks, and the block that counts: the one in
// document.signature, else the one at the root. A malformed block stays where it is, to be rejected with the rest of the
// structure. root is not changed.
func stripSignatures(root *jsonvalue.Node) (*jsonvalue.Node, map[string]any) {
	var signature map[string]any
	if block := root.Get("signature"); signatureFault(block) == "" {
		signature = block.Value().(map[string]any)
		root = without(root, "signature")
	}
	inner := root.Get("document")
	if block := inner.Get("signature"); signatureFault(block) == "" {
		signature = block.Value().(map[string]any)
		root = replace(root, "document", without(inner, "signature"))
	}
	return root, signature
}

// signatureFault returns the fault of a signature block (spec: cli-and-config, 15.1), or "".
func signatureFault(block *jsonvalue.Node) string {
	if block == nil || block.Kind != jsonvalue.Object {
		return "a signature is an object with a value"
	}
	if v := block.Get("value"); v == nil || v.Kind != jsonvalue.String {
		return "a signature must have a string value, a compact JWS"
	}
	if alg := block.Get("alg"); alg != nil && (alg.Kind != jsonvalue.String || alg.Str != "EdDSA") {
		return "the only signature algorithm is EdDSA"
	}
	if id := block.Get("keyId"); id != nil && id.Kind != jsonvalue.String {
		return "the keyId of a signature is a text"
	}
	return ""
}

func without(object *jsonvalue.Node, name string) *jsonvalue.Node {
	c := *object
	c.Members = slices.DeleteFunc(slices.Clone(object.Members), func(m jsonvalue.Member) bool { return m.Name == name })
	return &c
}

func replace(object *jsonvalue.Node, name string, value *jsonvalue.Node) *jsonvalue.Node {
	c := *object
	c.Members = slices.Clone(object.Members)
	for i := range c.Members {
		if c.Members[i].Name == name {
			c.Members[i].Value = value
		}
	}
	return &c
}
