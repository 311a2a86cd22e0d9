package conformance

import (
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// object reads one object of a vector strictly: a member that is missing, of the wrong kind, or that nobody asked for
// is a problem. The zero value stands for an object that is absent: everything it is asked for is absent too.
type object struct {
	node     *jsonvalue.Node
	at       string
	asked    map[string]bool
	problems *problems
}

func newObject(node *jsonvalue.Node, at string, ps *problems) object {
	if node == nil {
		return object{problems: ps}
	}
	if node.Kind != jsonvalue.Object {
		ps.add(at, "must be an object, not %s", node.Kind)
		return object{problems: ps}
	}
	return object{node: node, at: at, asked: map[string]bool{}, problems: ps}
}

// member gives a member's node, nil if it is absent, which required reports, or of another kind, which is reported.
func (o object) member(name string, required bool, kind jsonvalue.Kind) *jsonvalue.Node {
	if o.node == nil {
		return nil
	}
	o.asked[name] = true
	node := o.node.Get(name)
	if node == nil {
		if required {
			o.problems.add(o.at, "the member %q is missing", name)
		}
		return nil
	}
	if node.Kind != kind {
		o.problems.add(o.place(name), "must be of type %s, not %s", kind, node.Kind)
		return nil
	}
	return node
}

func (o object) place(name string) string { return o.at + "/" + jsonvalue.EscapePointer(name) }

func (o object) text(name string, required bool) string {
	node := o.member(name, required, jsonvalue.String)
	if node == nil {
		return ""
	}
	if required && strings.TrimSpace(node.Str) == "" {
		o.problems.add(o.place(name), "must not be blank")
	}
	return node.Str
}

// word is text that must be one of the given words if it is there.
func (o object) word(name string, required bool, words ...string) string {
	text := o.text(name, required)
	if text == "" {
		return ""
	}
	if slices.Contains(words, text) {
		return text
	}
	o.problems.add(o.place(name), "%q is not known; known are %s", text, strings.Join(words, ", "))
	return ""
}

func (o object) flag(name string) (value, given bool) {
	node := o.member(name, false, jsonvalue.Bool)
	if node == nil {
		return false, false
	}
	return node.Bool, true
}

func (o object) is(name string) bool {
	value, _ := o.flag(name)
	return value
}

// count is a whole number of at least 0.
func (o object) count(name string) (value int, given bool) {
	node := o.member(name, false, jsonvalue.Number)
	if node == nil {
		return 0, false
	}
	value = int(node.Num)
	if float64(value) != node.Num || value < 0 {
		o.problems.add(o.place(name), "must be a whole number, not %s", node.Text)
		return 0, false
	}
	return value, true
}

// plain is an object taken as it is, nil if absent.
func (o object) plain(name string) map[string]any {
	node := o.member(name, false, jsonvalue.Object)
	if node == nil {
		return nil
	}
	return node.Value().(map[string]any)
}

func (o object) object(name string, required bool) object {
	return newObject(o.member(name, required, jsonvalue.Object), o.place(name), o.problems)
}

// list gives the elements of an array of objects; given tells an empty one from none.
func (o object) list(name string, required bool) (elements []object, given bool) {
	node := o.member(name, required, jsonvalue.Array)
	if node == nil {
		return nil, false
	}
	for i, e := range node.Elements {
		elements = append(elements, newObject(e, o.place(name)+"/"+strconv.Itoa(i), o.problems))
	}
	return elements, true
}

// texts gives an array of strings, nil if absent.
func (o object) texts(name string) []string {
	node := o.member(name, false, jsonvalue.Array)
	if node == nil {
		return nil
	}
	texts := make([]string, 0, len(node.Elements))
	for i, e := range node.Elements {
		if e.Kind != jsonvalue.String {
			o.problems.add(o.place(name)+"/"+strconv.Itoa(i), "must be of type string, not %s", e.Kind)
			continue
		}
		texts = append(texts, e.Str)
	}
	return texts
}

// end reports the members that nobody asked for.
func (o object) end() {
	if o.node == nil {
		return
	}
	for _, m := range o.node.Members {
		if !o.asked[m.Name] {
			o.problems.add(o.place(m.Name), "the format has no such member")
		}
	}
}
