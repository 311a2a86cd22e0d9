package signing

import "maps"

// Strip returns a definition without its signature members, which share what did not change. A value that is not an
// object is returned as it is.
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

// block finds the signature block: document.signature, else the top-level one, nil if there is none. What is not an
// object counts as absent.
func block(doc any) map[string]any {
	top, _ := doc.(map[string]any)
	head, _ := top["document"].(map[string]any)
	if b, ok := head["signature"].(map[string]any); ok {
		return b
	}
	b, _ := top["signature"].(map[string]any)
	return b
}
