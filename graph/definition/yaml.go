package definition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// ParseYAML reads a definition written in YAML with the strictness of Parse; positions are those of the YAML text. A part
// without a JSON form, or that YAML readers take differently, is rejected with a hint: tags of its own, merge keys, keys
// that are not texts, numbers that are not written as in JSON, several documents. Unquoted yes, no, on and off, and
// dates, are texts. Anchors and aliases are written out.
func ParseYAML(src []byte) (*Document, error) {
	root, findings := readYAML(src)
	if len(findings) > 0 {
		return nil, refuseText(findings)
	}
	return newDocument(root), nil
}

func readYAML(src []byte) (*jsonvalue.Node, problem.Findings) {
	if len(src) > MaxBytes {
		return nil, problem.Findings{textFinding(problem.DefinitionTooLarge, problem.Place{},
			fmt.Sprintf("the text has more than %d bytes", MaxBytes), textHint("size"))}
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff")) // written by editors on Windows
	if line, column, ok := firstInvalid(src); !ok {
		return nil, problem.Findings{textFinding(problem.DefinitionEncoding, problem.Place{Line: line, Column: column},
			"the text is not valid UTF-8", "save it as UTF-8")}
	}
	if at, found := tooManyValues(src, true); found {
		return nil, problem.Findings{refuseValues(at)}
	}
	top, err := decodeYAML(src)
	if f, found := fence(src); err != nil && found {
		return nil, problem.Findings{f}
	}
	if err != nil {
		return nil, problem.Findings{yamlSyntax(src, err)}
	}
	r := yamlReader{open: map[*yaml.Node]bool{}}
	root := r.value(top, nil, MaxDepth)
	return root, r.findings
}

func firstInvalid(src []byte) (line, column int, ok bool) {
	line, column = 1, 1
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return line, column, false
		}
		if column++; r == '\n' {
			line, column = line+1, 1
		}
		i += size
	}
	return 0, 0, true
}

var errSeveralDocuments = errors.New("the text holds several documents")

// decodeYAML returns the value of the only document.
func decodeYAML(src []byte) (n *yaml.Node, err error) {
	defer func() {
		// The reader returns errors for invalid text; a panic is a fault of the reader, caused by the text
		// too.
		if r := recover(); r != nil {
			n, err = nil, errors.New("the text cannot be read")
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	var document, next yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the text is empty")
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&next); {
	case err == nil:
		return nil, errSeveralDocuments
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return document.Content[0], nil
}

// pattern returns a regular expression that compiles on first use.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// yamlReader turns YAML nodes into JSON nodes.
type yamlReader struct {
	findings problem.Findings
	count    int
	// open holds the anchored nodes that are being read, to find aliases that contain themselves.
	open map[*yaml.Node]bool
	full bool
}

func (r *yamlReader) report(code problem.Code, n *yaml.Node, at *path, message, hint string) *jsonvalue.Node {
	if len(r.findings) < 100 {
		place := problem.Place{Pointer: at.pointer(), Line: n.Line, Column: n.Column}
		r.findings = append(r.findings, textFinding(code, place, message, hint))
	}
	return &jsonvalue.Node{Kind: jsonvalue.Null, Line: n.Line, Column: n.Column}
}

func (r *yamlReader) value(n *yaml.Node, at *path, depth int) *jsonvalue.Node {
	if r.count++; r.count > MaxValues || r.full {
		if !r.full {
			r.full = true
			r.report(problem.DefinitionTooLarge, n, at, fmt.Sprintf("the document has more than %d values", MaxValues),
				"write out fewer aliases")
		}
		return &jsonvalue.Node{Kind: jsonvalue.Null}
	}
	if depth == 0 && n.Kind != yaml.ScalarNode {
		r.full = true
		return r.report(problem.DefinitionTooDeep, n, at, tooDeep, "")
	}
	if !r.plainTag(n) {
		return r.report(problem.YAMLUnsupported, n, at, fmt.Sprintf("the tag %s has no JSON form", clip(n.Tag)), "remove the tag")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.alias(n, at, depth)
	case yaml.MappingNode:
		return r.object(n, at, depth)
	case yaml.SequenceNode:
		list := &jsonvalue.Node{Kind: jsonvalue.Array, Line: n.Line, Column: n.Column}
		for i, e := range n.Content {
			list.Elements = append(list.Elements, r.value(e, at.element(i), depth-1))
		}
		return list
	}
	return r.scalar(n, at)
}

// plainTag reports whether a tag that is written out is one of those that JSON has types for.
func (r *yamlReader) plainTag(n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle == 0 {
		return true
	}
	switch n.ShortTag() {
	case "!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null":
		return true
	}
	return false
}

func (r *yamlReader) alias(n *yaml.Node, at *path, depth int) *jsonvalue.Node {
	if n.Alias == nil || r.open[n.Alias] {
		return r.report(problem.YAMLUnsupported, n, at, fmt.Sprintf("the alias *%s contains itself", clip(n.Value)), "")
	}
	r.open[n.Alias] = true
	v := r.value(n.Alias, at, depth)
	delete(r.open, n.Alias)
	return v
}

func (r *yamlReader) object(n *yaml.Node, at *path, depth int) *jsonvalue.Node {
	object := &jsonvalue.Node{Kind: jsonvalue.Object, Line: n.Line, Column: n.Column}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, ok := r.name(key, at)
		if !ok {
			continue
		}
		if seen[name] {
			r.report(problem.DefinitionDuplicate, key, at.member(name), fmt.Sprintf("duplicate field %q", clip(name)),
				textHint("duplicate"))
		}
		if seen[name] = true; name == "__proto__" {
			r.report(problem.DefinitionReserved, key, at.member(name), "a field must not be named __proto__", textHint("proto"))
		}
		object.Members = append(object.Members, jsonvalue.Member{
			Name: name, Line: key.Line, Column: key.Column, Value: r.value(value, at.member(name), depth-1),
		})
	}
	return object
}

// name reads a key. Only texts are keys in JSON.
func (r *yamlReader) name(key *yaml.Node, at *path) (string, bool) {
	if key.Kind == yaml.AliasNode && key.Alias != nil {
		key = key.Alias
	}
	if key.Kind == yaml.ScalarNode && r.plainTag(key) {
		if isPlain(key) && key.Value == "<<" {
			r.report(problem.YAMLUnsupported, key, at, "merge keys have no JSON form", "write the fields out")
			return "", false
		}
		if v := r.scalar(key, at); v.Kind == jsonvalue.String {
			return v.Str, true
		}
	}
	r.report(problem.YAMLUnsupported, key, at, "a field name must be a string", "put the name into quotes")
	return "", false
}

func isPlain(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

var (
	jsonNumber = pattern(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	// otherNumber matches strings that some YAML readers take for a number: hexadecimal, octal and binary, signs, missing
	// digits, separators, base 60, infinities.
	otherNumber = pattern(`^[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|` +
		`\.[0-9_]+([eE][-+]?[0-9]+)?|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|\.inf|\.Inf|\.INF)$|^\.(nan|NaN|NAN)$`)
)

func (r *yamlReader) scalar(n *yaml.Node, at *path) *jsonvalue.Node {
	out := &jsonvalue.Node{Kind: jsonvalue.String, Line: n.Line, Column: n.Column, Str: n.Value}
	if !utf8.ValidString(n.Value) {
		return r.report(problem.DefinitionEncoding, n, at, "the text has escapes that are not characters", "")
	}
	tag := ""
	if n.Style&yaml.TaggedStyle != 0 {
		tag = n.ShortTag()
	}
	if tag == "!!str" || tag == "" && !isPlain(n) {
		return out
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		out.Kind, out.Str = jsonvalue.Null, ""
	case "true", "True", "TRUE":
		out.Kind, out.Str, out.Bool = jsonvalue.Bool, "", true
	case "false", "False", "FALSE":
		out.Kind, out.Str = jsonvalue.Bool, ""
	default:
		if jsonNumber().MatchString(n.Value) {
			return r.number(n, at, out)
		}
		if otherNumber().MatchString(n.Value) {
			return r.report(problem.YAMLUnsupported, n, at, fmt.Sprintf("YAML readers take %s differently", clip(n.Value)),
				"put a text into quotes; write a number as in JSON")
		}
	}
	if tag != "" && !fits(tag, out.Kind) {
		return r.report(problem.YAMLUnsupported, n, at, fmt.Sprintf("invalid value %q for the tag %s", clip(n.Value), tag), "remove the tag")
	}
	return out
}

func (r *yamlReader) number(n *yaml.Node, at *path, out *jsonvalue.Node) *jsonvalue.Node {
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsInf(f, 0) {
		return r.report(problem.DefinitionNumber, n, at, fmt.Sprintf("the number %s does not fit into a double", clip(n.Value)),
			textHint("number"))
	}
	out.Kind, out.Str, out.Text, out.Num = jsonvalue.Number, "", n.Value, f
	if tag := n.ShortTag(); n.Style&yaml.TaggedStyle != 0 && (tag != "!!int" || strings.ContainsAny(n.Value, ".eE")) && tag != "!!float" {
		return r.report(problem.YAMLUnsupported, n, at, fmt.Sprintf("invalid value %q for the tag %s", clip(n.Value), tag), "remove the tag")
	}
	return out
}

func fits(tag string, kind jsonvalue.Kind) bool {
	switch tag {
	case "!!null":
		return kind == jsonvalue.Null
	case "!!bool":
		return kind == jsonvalue.Bool
	}
	return false
}
