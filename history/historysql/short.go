package historysql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"reflect"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A large record is written short: FORMAT.md, "Large values", describes the form. Its row has the version shortVersion,
// so that no other engine takes what stands there for the record.

// shortVersion is the record_schema_version of rows that are not complete in themselves. This engine counts its own forms
// from 1000, far from any version of the protocol that another engine may write one day.
const shortVersion = 1000

// The members that stand for values in a short payload. A member of the workflow whose name begins with "$" is written
// with one more, so that none can be mistaken for these.
const (
	markBlob     = "$blob"     // the value is the content of a blob
	markState    = "$state"    // the state is that of another record
	markPart     = "$part"     // the object is made of members of another record's state
	markSnapshot = "$snapshot" // the state is written whole
	markDelta    = "$delta"    // the state is written as what has changed
)

// blob is a value that stands by itself.
type blob struct {
	hash    string
	content string
}

// reference is what stands for a value that has been put aside, with the size of all that it stands for.
type reference struct {
	text string
	size int
}

// valueKey is the same for one value that is met twice: a string by its content, a list or an object by the pointer to it. It
// holds that pointer, so that no other value can get the same key while it is kept.
type valueKey struct {
	at     any
	length int
}

// keyOf returns the zero key for what is empty or neither a string, a list nor an object.
func keyOf(v any) valueKey {
	switch v := v.(type) {
	case string:
		return valueKey{v, len(v)}
	case []any:
		if len(v) > 0 {
			return valueKey{&v[0], len(v)}
		}
	case map[string]any:
		if len(v) > 0 {
			return valueKey{reflect.ValueOf(v).UnsafePointer(), len(v)}
		}
	}
	return valueKey{}
}

// hashOf is what names a text.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// cutter writes values, putting aside the large ones.
type cutter struct {
	// least is the size from which on a value is put aside.
	least int
	blobs []blob
	// seen are the references to values that have been put aside: a record's result and the state that it leads to hold
	// the same value, which is encoded and hashed once.
	seen map[valueKey]reference
	// cut says that the text written last is not that of the value itself.
	cut bool
	// put is the size of the contents of the blobs that the text written last needs.
	put int
}

// value appends the text of a value. Values are put aside from the inside out: of a long list of small elements the
// list, of an object with one long text the text.
func (c *cutter) value(dst []byte, v any) []byte {
	start, before := len(dst), c.put
	if text, ok := v.(string); len(c.seen) > 0 && (!ok || len(text) >= c.least) {
		if ref, ok := c.seen[keyOf(v)]; ok {
			c.cut = true
			c.put += ref.size
			return append(dst, ref.text...)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range jsonvalue.Keys(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if name != "" && name[0] == '$' {
				dst, c.cut = jsonvalue.AppendString(dst, "$"+name), true
			} else {
				dst = jsonvalue.AppendString(dst, name)
			}
			dst = c.value(append(dst, ':'), v[name])
		}
		dst = append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = c.value(dst, e)
		}
		dst = append(dst, ']')
	default:
		if plain, err := jsonvalue.Normalize(v); err == nil && !scalar(v) {
			return c.value(dst, plain)
		}
		dst = jsonvalue.Append(dst, v)
	}
	if len(dst)-start < c.least {
		return dst
	}
	return c.aside(dst, start, before, keyOf(v))
}

// scalar reports whether a value is one that nothing can be cut out of.
func scalar(v any) bool {
	switch v.(type) {
	case nil, bool, float64, string:
		return true
	}
	return false
}

// aside makes a blob of the text from start on and puts the reference in its place.
func (c *cutter) aside(dst []byte, start, before int, key valueKey) []byte {
	content := string(dst[start:])
	hash := hashOf(dst[start:])
	dst = append(dst[:start], `{"`+markBlob+`":"`...)
	dst = append(append(dst, hash...), `"}`...)
	c.blobs = append(c.blobs, blob{hash, content})
	c.cut = true
	c.put += len(content)
	if key != (valueKey{}) {
		if c.seen == nil {
			c.seen = map[valueKey]reference{}
		}
		c.seen[key] = reference{text: string(dst[start:]), size: c.put - before}
	}
	return dst
}

// shortener writes the large records of a batch short. The zero value with store and batch is ready to use.
type shortener struct {
	ctx   context.Context
	store *Store
	batch *history.Batch
	cutter
	// rows are the seqs of the records written short.
	rows []int64
	// prior is the newest state, as far as it is written short: what the next one is compared with.
	prior priorState
	// asked says that the row of the batch's prior state has been looked at.
	asked bool
}

// append appends the payload of record i, as it is or short.
func (s *shortener) append(dst []byte, i int) []byte {
	r, most := &s.batch.Records[i], s.store.options.WholeBytes
	start := len(dst)
	whole := r.Weigh(most) < most
	if whole {
		dst = r.AppendPayload(dst, s.batch.ExecutionID)
		whole = len(dst)-start <= most
	}
	if !whole {
		dst = s.appendShort(dst[:start], i)
	} else if r.Name == history.StateUpdated {
		s.prior, s.asked = priorState{}, true
	}
	return dst
}

func (s *shortener) appendShort(dst []byte, i int) []byte {
	s.askPrior()
	r, seq := &s.batch.Records[i], s.batch.ExpectedSeq+1+int64(i)
	s.least = s.store.options.ValueBytes
	cut := false
	dst = r.AppendPayloadFunc(dst, s.batch.ExecutionID, func(dst []byte, member string, v any) []byte {
		s.cut, s.put = false, 0
		state, _ := v.(map[string]any)
		switch {
		case member == "state" && r.Name == history.StateUpdated:
			dst = s.appendState(dst, seq, state)
		case s.prior.seq > 0 && state != nil && len(state) > 0 && keyOf(state) == keyOf(s.prior.state):
			dst = appendReference(dst, s.prior.seq)
			s.cut = true
		default:
			part := false
			// The input of a delegate is read by the projection, which has no state at hand.
			if s.prior.seq > 0 && len(state) > 0 && member != "delegateInput" {
				dst, part = s.appendPart(dst, state)
			}
			if !part {
				dst = s.value(dst, v)
			}
		}
		cut = cut || s.cut
		return dst
	})
	if cut {
		s.rows = append(s.rows, seq)
	}
	return dst
}
