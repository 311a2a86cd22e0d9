package mcpserver

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// knownDefinitions holds definitions that clients have sent as objects, by the hash of their text: hosts send a run's definition with every call,
// and reading 100 kB again costs ten times the call. What is used is always the document that was read from the same text.
type knownDefinitions struct {
	mu sync.Mutex
	// recent has the one used last in front.
	recent []knownDefinition
}

type knownDefinition struct {
	hash     [sha256.Size]byte
	bytes    int
	document *definition.Document
}

// The bounds of what is held; a document takes several times its text. Short texts are read as fast as they are looked up.
const (
	shortDefinition        = 2 << 10
	maxKnownDefinitions    = 32
	maxKnownDefinitionText = 4 << 20
)

// find returns the document of a text, nil if it is not known.
func (k *knownDefinitions) find(text []byte) *definition.Document {
	if k == nil || len(text) < shortDefinition {
		return nil
	}
	hash := sha256.Sum256(text)
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.recent, func(d knownDefinition) bool { return d.hash == hash })
	if i < 0 {
		return nil
	}
	d := k.recent[i]
	k.recent = slices.Insert(slices.Delete(k.recent, i, i+1), 0, d)
	return d.document
}

// add keeps the document that was read from a text.
func (k *knownDefinitions) add(text []byte, d *definition.Document) {
	if k == nil || len(text) < shortDefinition {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recent = slices.Insert(k.recent, 0, knownDefinition{sha256.Sum256(text), len(text), d})
	sum := 0
	for i, d := range k.recent {
		if sum += d.bytes; sum > maxKnownDefinitionText || i == maxKnownDefinitions {
			clear(k.recent[i:])
			k.recent = k.recent[:i]
			return
		}
	}
}
