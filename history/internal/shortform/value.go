package shortform

import (
	"reflect"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// valueWriter writes values and moves the large ones to blobs.
type valueWriter struct {
	// least is the size from which on a value becomes a blob.
	least int
	blobs []Blob
	// seen are the references to values that are blobs already: a record's result and the state that it leads to hold the same
	// value, which is encoded and hashed once.
	seen map[valueKey]reference
	// short says that the text written last differs from that of the value itself.
	short bool
	// blobSize is the size of the contents of the blobs that the text written last needs.
	blobSize int
}

// reference stands for a value in a blob. size is that of the blob and of those inside.
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

// value appends the text of a value. Blobs are made from the inside out: of a long list of small elements the list becomes a
// blob, of an object with one long text the text.
func (w *valueWriter) value(dst []byte, v any) []byte {
	start, before := len(dst), w.blobSize
	if text, ok := v.(string); len(w.seen) > 0 && (!ok || len(text) >= w.least) {
		if ref, ok := w.seen[keyOf(v)]; ok {
			w.short = true
			w.blobSize += ref.size
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
				dst, w.short = jsonvalue.AppendString(dst, "$"+name), true
			} else {
				dst = jsonvalue.AppendString(dst, name)
			}
			dst = w.value(append(dst, ':'), v[name])
		}
		dst = append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.value(dst, e)
		}
		dst = append(dst, ']')
	default:
		if plain, err := jsonvalue.Normalize(v); err == nil && !isScalar(v) {
			return w.value(dst, plain)
		}
		dst = jsonvalue.Append(dst, v)
	}
	if len(dst)-start < w.least {
		return dst
	}
	return w.toBlob(dst, start, before, keyOf(v))
}

// toBlob makes a blob of the text from start on and puts the reference in its place.
func (w *valueWriter) toBlob(dst []byte, start, before int, key valueKey) []byte {
	b := Blob{HashOf(dst[start:]), string(dst[start:])}
	w.blobs = append(w.blobs, b)
	w.short = true
	w.blobSize += len(b.Content)
	dst = append(append(append(dst[:start], `{"`+markBlob+`":"`...), b.Hash...), `"}`...)
	if key != (valueKey{}) {
		if w.seen == nil {
			w.seen = map[valueKey]reference{}
		}
		w.seen[key] = reference{text: string(dst[start:]), size: w.blobSize - before}
	}
	return dst
}
