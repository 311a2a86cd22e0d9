package jsonvalue

import "math"

// Kind is the type of a Node.
type Kind uint8

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"null", "boolean", "number", "string", "array", "object"}

// String is the kind's name in JSON Schema's spelling, for instance "boolean".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// KindOf returns the kind of a plain value. Whatever is not of the model counts as a number, which has many Go types.
func KindOf(v any) Kind {
	switch v.(type) {
	case nil:
		return Null
	case bool:
		return Bool
	case string:
		return String
	case []any:
		return Array
	case map[string]any:
		return Object
	}
	return Number
}

// Node is a parsed value with its place in the source.
type Node struct {
	Kind Kind
	// Line and Column are 1-based, columns count characters; both 0 for a node made from a decoded value.
	Line, Column int
	// Offset is the byte offset of the value's first byte.
	Offset int
	Bool   bool
	// Str is the decoded string of a String.
	Str string
	// Text is the number as written; Num its double, infinite where the number overflows one (which Parse reports).
	Text     string
	Num      float64
	Elements []*Node
	Members  []Member
}

// Member is one member of an Object, in source order. A name that was given twice is there twice.
type Member struct {
	Name string
	// Line and Column of the name.
	Line, Column int
	Value        *Node
}

// FromValue makes a Node tree of a plain value. Members are in the protocol's order, places are zero.
func FromValue(v any) *Node {
	switch v := v.(type) {
	case nil:
		return &Node{Kind: Null}
	case bool:
		return &Node{Kind: Bool, Bool: v}
	case float64:
		return &Node{Kind: Number, Num: v, Text: string(appendNumber(nil, v))}
	case string:
		return &Node{Kind: String, Str: v}
	case []any:
		n := &Node{Kind: Array, Elements: make([]*Node, len(v))}
		for i, e := range v {
			n.Elements[i] = FromValue(e)
		}
		return n
	case map[string]any:
		n := &Node{Kind: Object, Members: make([]Member, 0, len(v))}
		for _, name := range Keys(v) {
			n.Members = append(n.Members, Member{Name: name, Value: FromValue(v[name])})
		}
		return n
	}
	plain, err := Normalize(v)
	if err != nil {
		return &Node{Kind: Null}
	}
	return FromValue(plain)
}

// Value returns the plain value of a node: the last of duplicate members counts, a number that overflows a double is
// nil (spec: execution, 0.2), negative zero is zero. The value of a nil node is nil.
func (n *Node) Value() any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case Bool:
		return n.Bool
	case Number:
		if math.IsInf(n.Num, 0) || math.IsNaN(n.Num) {
			return nil
		}
		return n.Num + 0 // -0 + 0 is 0
	case String:
		return n.Str
	case Array:
		list := make([]any, len(n.Elements))
		for i, e := range n.Elements {
			list[i] = e.Value()
		}
		return list
	case Object:
		object := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			object[m.Name] = m.Value.Value()
		}
		return object
	}
	return nil
}

// Get returns the member's value, nil if absent or n is not an object. Of duplicate members it returns the last.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for i := len(n.Members) - 1; i >= 0; i-- {
		if n.Members[i].Name == name {
			return n.Members[i].Value
		}
	}
	return nil
}
