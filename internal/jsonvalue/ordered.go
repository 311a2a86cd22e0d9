package jsonvalue

import "time"

// Ordered is a JSON object whose members keep the order in which they were put: answers are read by people and models, top
// to bottom. A value is an Ordered, an []Ordered, a Raw or a plain JSON value.
type Ordered []struct {
	Name  string
	Value any
}

// Raw is JSON text that is written as it is.
type Raw []byte

// Put adds a member.
func (o *Ordered) Put(name string, value any) {
	*o = append(*o, struct {
		Name  string
		Value any
	}{name, value})
}

// Text adds a string unless it is empty: the protocol leaves out fields without a value.
func (o *Ordered) Text(name, value string) {
	if value != "" {
		o.Put(name, value)
	}
}

// Object adds an object unless it is nil.
func (o *Ordered) Object(name string, value map[string]any) {
	if value != nil {
		o.Put(name, value)
	}
}

// Number adds a number unless it is 0.
func (o *Ordered) Number(name string, value int64) {
	if value != 0 {
		o.Put(name, float64(value))
	}
}

// Instant adds a time, in the form of records, unless it is zero.
func (o *Ordered) Instant(name string, t time.Time) {
	if !t.IsZero() {
		o.Put(name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
}

// MarshalJSON returns the compact text.
func (o Ordered) MarshalJSON() ([]byte, error) { return o.Append(nil), nil }

// Append appends the compact text.
func (o Ordered) Append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, m.Name)
		dst = append(dst, ':')
		dst = appendOrdered(dst, m.Value)
	}
	return append(dst, '}')
}

func appendOrdered(dst []byte, value any) []byte {
	switch v := value.(type) {
	case Ordered:
		return v.Append(dst)
	case []Ordered:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.Append(dst)
		}
		return append(dst, ']')
	case Raw:
		return append(dst, v...)
	default:
		return Append(dst, v)
	}
}
