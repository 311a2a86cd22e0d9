package signing

import "maps"

// Strip returns a definition without its signature fields. The result shares all other values. A value that is not an object is returned
// unchanged.
func Strip(doc any) any {
	top, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	head, ok := top["document"].(map[string]any)
	_, inHead := head["signature"]
	_, onTop := top["signature"]
	if !onTop && !(ok && inHead) {
		return doc
	}
	top = maps.Clone(top)
	delete(top, "signature")
	if ok && inHead {
		head = maps.Clone(head)
		delete(head, "signature")
		top["document"] = head
	}
	return top
}

// block returns the signature block: document.signature, or else the top-level one. It returns nil if neither is an object.
func block(doc any) map[string]any {
	top, _ := doc.(map[string]any)
	head, _ := top["document"].(map[string]any)
	if b, ok := head["signature"].(map[string]any); ok {
		return b
	}
	b, _ := top["signature"].(map[string]any)
	return b
}
