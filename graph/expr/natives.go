package expr

import (
	"strconv"
	"strings"
	"sync"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// natives are the functions that programs call in place of the interpreter's own, by name and arity. Most charge for
// the work of the interpreter's function and then call it; a few are new implementations. Names that begin with an
// underscore are for the prelude and for rewritten operators.
var natives = map[string]native{
	"_add/2":       add,
	"_subtract/2":  subtract,
	"_multiply/2":  multiply,
	"_divide/2":    divide,
	"_modulo/2":    modulo,
	"_equal/2":     comparison(func(c int) bool { return c == 0 }),
	"_notequal/2":  comparison(func(c int) bool { return c != 0 }),
	"_less/2":      comparison(func(c int) bool { return c < 0 }),
	"_lesseq/2":    comparison(func(c int) bool { return c <= 0 }),
	"_greater/2":   comparison(func(c int) bool { return c > 0 }),
	"_greatereq/2": comparison(func(c int) bool { return c >= 0 }),
	"_caught/0":    caught,
	"_members/0":   hasMembers,
	"_parts/0":     hasParts,
	"_filled/1":    filled,
	"_touch/0":     touch,
	"_indexed/0":   indexed,
	"_key/0":       key,
	"_name/0":      memberName,
	"_path/0":      wholePath,
	"_made/0":      pathMade,
	"_held/0":      held,
	"_element/0":   element,
	"_complete/0":  complete,
	"_round/0":     round,
	"_deep/0":      notTooDeep,

	"_edit/0":     beginEdit,
	"_get/1":      editGet,
	"_set/2":      editSet,
	"_done/0":     endEdit,
	"_value/0":    editValue,
	"_share/2":    editShare,
	"_settle/0":   settleEdit,
	"setpath/2":   setPath,
	"delpaths/1":  deletePaths,
	"_matches/2":  matches,
	"_test/2":     testRegexp,
	"_captures/0": charged("_captures", captured),
	"_splits/2":   splitRegexp,
	"_scan/2":     scanned,
	"_find/2":     find,
	"_count/0":    countFound,
	"_named/1":    named,
	"_splice/2":   splice,

	"tonumber/0": toNumber,
	"fromjson/0": fromJSON,

	"length/0":         charged("length", characters),
	"tostring/0":       toString,
	"tojson/0":         toJSON,
	"split/1":          split,
	"trim/0":           charged("trim", characters),
	"ltrim/0":          charged("ltrim", characters),
	"rtrim/0":          charged("rtrim", characters),
	"ascii_downcase/0": charged("ascii_downcase", changed),
	"ascii_upcase/0":   charged("ascii_upcase", changed),
	"startswith/1":     charged("startswith", shorter),
	"endswith/1":       charged("endswith", shorter),
	"ltrimstr/1":       charged("ltrimstr", shorter),
	"rtrimstr/1":       charged("rtrimstr", shorter),
	"trimstr/1":        charged("trimstr", shorter),

	"keys/0":       charged("keys", copied(sortFactor)),
	"add/0":        charged("add", parts),
	"reverse/0":    charged("reverse", copied(1)),
	"transpose/0":  charged("transpose", transposed),
	"flatten/0":    charged("flatten", flattened),
	"flatten/1":    charged("flatten", flattened),
	"join/1":       charged("join", joined),
	"explode/0":    charged("explode", exploded),
	"implode/0":    charged("implode", copied(1)),
	"format/1":     charged("format", written(plainInFormats)),
	"contains/1":   charged("contains", contained(false)),
	"inside/1":     charged("inside", contained(true)),
	"index/1":      charged("index", searched),
	"rindex/1":     charged("rindex", searched),
	"indices/1":    charged("indices", searched),
	"bsearch/1":    charged("bsearch", halved),
	"min/0":        charged("min", deep),
	"max/0":        charged("max", deep),
	"sort/0":       charged("sort", sorted),
	"unique/0":     charged("unique", sorted),
	"_min_by/1":    charged("_min_by", deepArgument),
	"_max_by/1":    charged("_max_by", deepArgument),
	"_sort_by/1":   charged("_sort_by", sortedArgument),
	"_group_by/1":  charged("_group_by", sortedArgument),
	"_unique_by/1": charged("_unique_by", sortedArgument),
	"jn/2":         charged("jn", counted),
	"yn/2":         charged("yn", counted),
	"builtins/0":   charged("builtins", constant(64<<10)),
	"frexp/0":      charged("frexp", constant(8*elementCost)),
	"modf/0":       charged("modf", constant(8*elementCost)),

	// The only time zone is UTC, and the only time is that of the handled input.
	"now/0":           now,
	"gmtime/0":        charged("gmtime", brokenDown),
	"localtime/0":     charged("gmtime", brokenDown),
	"strftime/1":      charged("strftime", formatted),
	"strflocaltime/1": charged("strftime", formatted),
	"strptime/1":      parseTime,
}

// iteratedBytes is the size of an element, with its boxed position, in the list that an iteration walks.
const iteratedBytes = 40

// touch returns its input and charges for the iteration or slice that follows: the interpreter lists all parts before
// the first, those of an object in order.
func touch(m *meter, in any, _ []any) any {
	switch v := in.(type) {
	case string:
		m.charge(len(v))
	case []any:
		if m.charge(2 * elementCost * len(v)) {
			m.hold(iteratedBytes * len(v))
		}
	case map[string]any:
		m.allocate(sortFactor * memberCost * len(v))
	}
	return in
}

// key remembers the key of an index: a list as the key of a list is searched for in it.
func key(m *meter, in any, _ []any) any {
	m.key, _ = in.([]any)
	return in
}

// indexed is touch for an index: one element follows, at the key that was evaluated before.
func indexed(m *meter, in any, _ []any) any {
	switch v := in.(type) {
	case string:
		m.charge(len(v))
	case []any:
		if m.key != nil {
			searched(m, in, []any{m.key})
		}
	}
	return in
}

// memberName returns its input, which is the name of a member in a pattern.
func memberName(_ *meter, in any, _ []any) any {
	if _, list := in.([]any); list {
		return faultf("expected a string for object key but got: array")
	}
	return in
}

// wholePath returns its input, which is a path that is about to be followed.
func wholePath(m *meter, in any, _ []any) any {
	path, _ := in.([]any)
	if !m.charge(shallowCost(in)) {
		return m.exceeded
	}
	for _, step := range path {
		if _, list := step.([]any); list {
			return faultf("a path holds a list")
		}
	}
	return in
}

// filled returns an object with other values: args[0] has a list for each field, in the order of their names, with
// the value, or an empty list to leave the field out.
func filled(m *meter, in any, args []any) any {
	object, values := in.(map[string]any), args[0].([]any)
	if !m.allocate(2*memberCost*len(object) + objectCost) {
		return m.exceeded
	}
	changed := make(map[string]any, len(object))
	for i, name := range jsonvalue.Keys(object) {
		if value := values[i].([]any); len(value) > 0 {
			changed[name] = value[0]
		}
	}
	return changed
}

// caught returns its input, a caught error, and charges for its text: a text that was cut off quotes a value as large
// as the largest one so far, and an object had its names sorted.
func caught(m *meter, in any, _ []any) any {
	cost := errorCost
	switch text, _ := in.(string); {
	case strings.Contains(text, " ...]"), strings.Contains(text, " ...}"):
		cost = times(12, m.largest())
	case strings.Contains(text, " ..."):
		cost = times(2, m.largest())
	}
	if !m.charge(cost) {
		return m.exceeded
	}
	return in
}

// hasMembers reports whether a member can be asked for.
func hasMembers(_ *meter, in any, _ []any) any {
	_, object := in.(map[string]any)
	return object || in == nil
}

// hasParts reports whether a value can be iterated over.
func hasParts(_ *meter, in any, _ []any) any {
	switch in.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// pathMade returns its input, which is a path that was just made.
func pathMade(m *meter, in any, _ []any) any {
	if !m.allocate(3 * shallowCost(in)) { // it grew
		return m.exceeded
	}
	return in
}

// interpreted calls one of the interpreter's own functions. The text of an error is charged for.
func interpreted(m *meter, name string, in any, args []any) any {
	v := interpreter(name, len(args))(in, args)
	if err, ok := v.(error); ok {
		m.charge(errorCost)
		return faultf("%s", withoutValues(err))
	}
	return v
}

// interpreter returns a compiled call of a function of the interpreter, made once and shared.
func interpreter(name string, arity int) func(in any, args []any) any {
	key := name + "/" + strconv.Itoa(arity)
	if f, ok := interpreterCalls.Load(key); ok {
		return f.(func(any, []any) any)
	}
	variables := []string{"$a", "$b", "$c"}[:arity]
	text := name
	if arity > 0 {
		text += "(" + strings.Join(variables, "; ") + ")"
	}
	query, err := gojq.Parse(text)
	if err != nil {
		panic("expr: " + text + ": " + err.Error())
	}
	code, err := gojq.Compile(query, gojq.WithVariables(variables))
	if err != nil {
		panic("expr: " + text + ": " + err.Error())
	}
	call := func(in any, args []any) any {
		v, _ := code.Run(in, args...).Next()
		return v
	}
	f, _ := interpreterCalls.LoadOrStore(key, call)
	return f.(func(any, []any) any)
}

var interpreterCalls sync.Map // by name and arity
