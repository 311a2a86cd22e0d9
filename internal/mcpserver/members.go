package mcpserver

import (
	"time"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// members is a JSON object whose members keep the order they were put in: answers are read by people and models, top to
// bottom. A value is members, []members or a plain JSON value.
type members []member

type member struct {
	name  string
	value any
}

// raw is JSON text that is taken over as it is.
type raw []byte

func (m *members) put(name string, value any) { *m = append(*m, member{name, value}) }

// text puts a string unless it is empty: the protocol leaves out what has no value.
func (m *members) text(name, value string) {
	if value != "" {
		m.put(name, value)
	}
}

// object puts an object unless it is nil.
func (m *members) object(name string, value map[string]any) {
	if value != nil {
		m.put(name, value)
	}
}

// number puts a number unless it is 0.
func (m *members) number(name string, value int64) {
	if value != 0 {
		m.put(name, float64(value))
	}
}

// instant puts a time, as records have it, unless it is zero.
func (m *members) instant(name string, t time.Time) {
	if !t.IsZero() {
		m.put(name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
}

// MarshalJSON is the compact text.
func (m members) MarshalJSON() ([]byte, error) { return m.appendTo(nil), nil }

func (m members) appendTo(dst []byte) []byte {
	dst = append(dst, '{')
	for i, e := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonvalue.AppendString(dst, e.name)
		dst = append(dst, ':')
		dst = appendValue(dst, e.value)
	}
	return append(dst, '}')
}

func appendValue(dst []byte, value any) []byte {
	switch v := value.(type) {
	case members:
		return v.appendTo(dst)
	case []members:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.appendTo(dst)
		}
		return append(dst, ']')
	case raw:
		return append(dst, v...)
	default:
		return jsonvalue.Append(dst, v)
	}
}
