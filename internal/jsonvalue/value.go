package jsonvalue

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
	// Text is the number as written; Num its double.
	Text     string
	Num      float64
	Elements []*Node
	Members  []Member
}

// Member is one member of an Object, in source order.
type Member struct {
	Name string
	// Line and Column of the name.
	Line, Column int
	Value        *Node
}

// SyntaxError is one problem of a text.
type SyntaxError struct {
	Line, Column, Offset int
	// Kind is one of "syntax", "duplicate", "proto", "surrogate", "utf8", "number", "depth", "size", "trailing".
	Kind    string
	Pointer string
	Message string
}

// Parse reads one JSON value strictly. maxDepth and maxBytes of 0 mean 512 levels and no limit. Where a syntax error
// ends parsing the node is nil; other problems are collected and the node is complete.
func Parse(src []byte, maxDepth, maxBytes int) (*Node, []SyntaxError) { panic("not written yet") }

// FromValue makes a Node tree of a plain value.
func FromValue(v any) *Node { panic("not written yet") }

// Value gives the plain value of a node.
func (n *Node) Value() any { panic("not written yet") }

// Lookup gives the node at a JSON pointer, nil if there is none.
func (n *Node) Lookup(pointer string) *Node { panic("not written yet") }

// Get gives the member's value, nil if absent or n is no object.
func (n *Node) Get(name string) *Node { panic("not written yet") }

// Append appends the canonical text of a plain value (spec: execution, 9.4): compact, members in the protocol's
// order, doubles in ECMAScript form. It is also the text that records are stored as.
func Append(dst []byte, v any) []byte { panic("not written yet") }

// AppendString appends a JSON string.
func AppendString(dst []byte, s string) []byte { panic("not written yet") }

// Canonical is Append to a new slice.
func Canonical(v any) []byte { return Append(nil, v) }

// Hash is the lower-case hex SHA-256 of Canonical(v).
func Hash(v any) string { panic("not written yet") }

// Keys gives an object's member names in the protocol's order: canonical array indexes first, numerically, then the
// others by UTF-16 code units.
func Keys(m map[string]any) []string { panic("not written yet") }

// Decode reads JSON text into a plain value; numbers become float64. It is the lenient, fast reader for text that
// this engine or the reference wrote; use Parse for text from people. Lone surrogates become U+FFFD.
func Decode(src []byte) (any, error) { panic("not written yet") }

// Normalize turns a Go value (ints, json.Number, *big.Int, structs, typed maps and slices, json.RawMessage, …) into
// the model. NaN, infinities and values that are no JSON are errors that name the pointer.
func Normalize(v any) (any, error) { panic("not written yet") }

// Clone is a deep copy of a plain value.
func Clone(v any) any { panic("not written yet") }

// CloneMap is Clone for objects; nil stays nil.
func CloneMap(m map[string]any) map[string]any { panic("not written yet") }

// Equal compares two plain values deeply; member order does not matter, -0 equals 0.
func Equal(a, b any) bool { panic("not written yet") }

// Size is len(Canonical(v)) without building it, stopping early above limit (0: never).
func Size(v any, limit int) int { panic("not written yet") }

// EscapePointer escapes one reference token of a JSON pointer ("~" and "/").
func EscapePointer(token string) string { panic("not written yet") }
