package shortform

import (
	"reflect"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// valueWriter writes values and moves the large ones to blobs.
type valueWriter struct {
	// least is the smallest size of a blob, in bytes.
	least int
	blobs []Blob
	// seen maps values to references to their blobs. A record's result and the resulting state often contain the same value, which is encoded
	// and hashed once.
	seen map[valueKey]reference
	// short reports that the last text differs from the value's plain JSON.
	short bool
	// blobSize is the total size of the blobs that the last text needs.
	blobSize int
}

// reference replaces a value in a blob. size includes the blobs inside.
type reference struct {
	text string
	size int
}

// valueKey identifies a value: a string by its content, a list or an object by its pointer. The key holds the pointer, so no other value can
// get the same key during its lifetime.
type valueKey struct {
	at     any
	length int
}

// keyOf returns the key of a string, list or object, and the zero key for empty and other values.
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

// value appends the text of a value. Blobs are made from the inside out: a long list of small elements becomes one blob; in an object with
// one long text, only the text does.
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

// toBlob moves the text from start to a blob and replaces it by a reference.
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
