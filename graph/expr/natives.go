package expr

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/itchyny/gojq"
	"github.com/itchyny/timefmt-go"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// natives are the functions that programs call in place of the interpreter's own, by name and arity. Most charge for
// what the interpreter's function will do and then call it; a few are faster, or better defined, written anew. Names
// that begin with an underscore are for the prelude and for rewritten operators.
var natives = map[string]native{
	"_add/2":       add,
	"_subtract/2":  subtract,
	"_multiply/2":  multiply,
	"_divide/2":    divide,
	"_modulo/2":    modulo,
	"_equal/2":     equals,
	"_notequal/2":  differs,
	"_less/2":      comparison(func(c int) bool { return c < 0 }),
	"_lesseq/2":    comparison(func(c int) bool { return c <= 0 }),
	"_greater/2":   comparison(func(c int) bool { return c > 0 }),
	"_greatereq/2": comparison(func(c int) bool { return c >= 0 }),
	"_touch/0":     touch,

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
	"_captures/0": captures,
	"_splits/2":   splitRegexp,
	"_splice/2":   splice,

	"length/0":     length,
	"tostring/0":   toString,
	"tojson/0":     toJSON,
	"tonumber/0":   toNumber,
	"fromjson/0":   fromJSON,
	"split/1":      split,
	"startswith/1": onStrings("startswith", func(s, x string) any { return strings.HasPrefix(s, x) }),
	"endswith/1":   onStrings("endswith", func(s, x string) any { return strings.HasSuffix(s, x) }),
	"ltrimstr/1":   onStrings("ltrimstr", func(s, x string) any { return strings.TrimPrefix(s, x) }),
	"rtrimstr/1":   onStrings("rtrimstr", func(s, x string) any { return strings.TrimSuffix(s, x) }),
	"trimstr/1":    onStrings("trimstr", func(s, x string) any { return strings.TrimSuffix(strings.TrimPrefix(s, x), x) }),

	"keys/0":           charged("keys", shallow(sortFactor)),
	"add/0":            charged("add", parts),
	"reverse/0":        charged("reverse", shallow(1)),
	"transpose/0":      charged("transpose", transposed),
	"flatten/0":        charged("flatten", deep(1)),
	"flatten/1":        charged("flatten", deep(1)),
	"join/1":           charged("join", joined),
	"explode/0":        charged("explode", shallow(2*elementCost)),
	"implode/0":        charged("implode", shallow(1)),
	"trim/0":           charged("trim", shallow(1)),
	"ltrim/0":          charged("ltrim", shallow(1)),
	"rtrim/0":          charged("rtrim", shallow(1)),
	"ascii_downcase/0": charged("ascii_downcase", shallow(2)),
	"ascii_upcase/0":   charged("ascii_upcase", shallow(2)),
	"format/1":         charged("format", deep(textGrowth)),
	"contains/1":       charged("contains", contained(false)),
	"inside/1":         charged("inside", contained(true)),
	"index/1":          charged("index", searched),
	"rindex/1":         charged("rindex", searched),
	"indices/1":        charged("indices", searched),
	"bsearch/1":        charged("bsearch", halved),
	"min/0":            charged("min", deep(1)),
	"max/0":            charged("max", deep(1)),
	"sort/0":           charged("sort", sorted),
	"unique/0":         charged("unique", sorted),
	"_min_by/1":        charged("_min_by", deepArgument),
	"_max_by/1":        charged("_max_by", deepArgument),
	"_sort_by/1":       charged("_sort_by", sortedArgument),
	"_group_by/1":      charged("_group_by", sortedArgument),
	"_unique_by/1":     charged("_unique_by", sortedArgument),
	"jn/2":             charged("jn", counted),
	"yn/2":             charged("yn", counted),
	"builtins/0":       charged("builtins", constant(64<<10)),

	// The engine has no time zone but UTC, and no time but that of the input that it works on.
	"now/0":           now,
	"localtime/0":     charged("gmtime", constant(scalarCost)),
	"strftime/1":      charged("strftime", formatted),
	"strflocaltime/1": charged("strftime", formatted),
	"strptime/1":      parseTime,
}

// sortFactor is how much more it takes to put the members of an object in order than to copy them.
const sortFactor = 4

// textGrowth is how much longer text can get than the value that it is made of: "\u0000" for one character, "&quot;".
const textGrowth = 6

// touch gives its input back, and charges for what the iteration or slicing that follows will do with it: the
// interpreter lists all parts before the first, those of an object in order.
func touch(m *meter, in any, _ []any) any {
	switch v := in.(type) {
	case string:
		m.charge(len(v))
	case []any:
		m.charge(2 * elementCost * len(v))
	case map[string]any:
		m.charge(sortFactor * memberCost * len(v))
	}
	return in
}

func length(m *meter, in any, _ []any) any {
	switch v := in.(type) {
	case nil:
		return 0
	case string:
		if !m.charge(len(v)) {
			return m.exceeded
		}
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	case bool:
		return faultf("length cannot be applied to boolean")
	}
	f, _ := number(in)
	return math.Abs(f)
}

func toString(m *meter, in any, _ []any) any {
	if s, ok := in.(string); ok {
		// Not for this, but for what the interpreter puts together of it where nothing else is charged.
		if !m.allocate(len(s)) {
			return m.exceeded
		}
		return s
	}
	if !m.deepTimes(in, textGrowth) {
		return m.exceeded
	}
	return text(in)
}

func toJSON(m *meter, in any, _ []any) any {
	if !m.deepTimes(in, textGrowth) {
		return m.exceeded
	}
	return text(in)
}

func text(v any) any {
	b, err := gojq.Marshal(v)
	if err != nil {
		return faultf("tojson cannot be applied to %s", typeName(v))
	}
	return string(b)
}

// maxNumberText is the length up to which a text can be a number; the interpreter would compute all of its digits.
const maxNumberText = 4096

func toNumber(_ *meter, in any, _ []any) any {
	s, ok := in.(string)
	if ok && len(s) > maxNumberText {
		return faultf("tonumber cannot be applied to a string of %d bytes", len(s))
	}
	v := interpreter("tonumber", 0)(in, nil)
	if f, ok := number(v); ok {
		if i, ok := v.(int); !ok || !isExact(i) {
			return f
		}
	}
	return v
}

func fromJSON(m *meter, in any, _ []any) any {
	s, ok := in.(string)
	if !ok {
		return faultf("fromjson cannot be applied to %s", typeName(in))
	}
	if !m.charge(times(len(s), memberCost/4)) {
		return m.exceeded
	}
	v, err := jsonvalue.Decode([]byte(s))
	if err != nil {
		return faultf("fromjson cannot be applied to a string that is no JSON")
	}
	return v
}

func split(m *meter, in any, args []any) any {
	s, ok := in.(string)
	if !ok {
		return faultf("split cannot be applied to %s", typeName(in))
	}
	separator, ok := args[0].(string)
	if !ok {
		return faultf("split wants a string to split at, not %s", typeName(args[0]))
	}
	return splitString(m, s, separator)
}

func splitString(m *meter, s, separator string) any {
	if s == "" {
		return []any{}
	}
	if !m.charge(len(s)) || !m.allocate(times(2*elementCost, strings.Count(s, separator)+1)) {
		return m.exceeded
	}
	words := strings.Split(s, separator)
	list := make([]any, len(words))
	for i, word := range words {
		list[i] = word
	}
	return list
}

func onStrings(name string, f func(s, x string) any) native {
	return func(m *meter, in any, args []any) any {
		s, ok := in.(string)
		if !ok {
			return faultf("%s cannot be applied to %s", name, typeName(in))
		}
		x, ok := args[0].(string)
		if !ok {
			return faultf("%s wants a string, not %s", name, typeName(args[0]))
		}
		if !m.charge(min(len(s), len(x))) {
			return m.exceeded
		}
		return f(s, x)
	}
}

func now(m *meter, _ any, _ []any) any {
	if m.now.IsZero() {
		return faultf("now has no value here: no time was recorded for this input")
	}
	return float64(m.now.UnixMilli()) / 1000
}

// parseTime is strptime with names of time zones read as on a machine that runs in UTC.
func parseTime(m *meter, in any, args []any) any {
	s, ok := in.(string)
	if !ok {
		return faultf("strptime cannot be applied to %s", typeName(in))
	}
	format, ok := args[0].(string)
	if !ok {
		return faultf("strptime wants a format, not %s", typeName(args[0]))
	}
	if !m.charge(len(s) + len(format)) {
		return m.exceeded
	}
	t, err := timefmt.ParseInLocation(s, format, time.UTC)
	if err != nil {
		return faultf("strptime: the string does not match the format %s", strconv.Quote(clip(format, maxClip)))
	}
	t = t.UTC()
	seconds := float64(t.Second()) + float64(t.Nanosecond())/1e9
	return []any{
		t.Year(), int(t.Month()) - 1, t.Day(), t.Hour(), t.Minute(), seconds, int(t.Weekday()), t.YearDay() - 1,
	}
}

// A price charges for one call and reports whether there was room.
type price func(m *meter, in any, args []any) bool

// charged calls the interpreter's function once the price is paid.
func charged(name string, pay price) native {
	return func(m *meter, in any, args []any) any {
		if !pay(m, in, args) {
			return m.exceeded
		}
		return interpreter(name, len(args))(in, args)
	}
}

func constant(cost int) price { return func(m *meter, _ any, _ []any) bool { return m.charge(cost) } }

func shallow(factor int) price {
	return func(m *meter, in any, _ []any) bool { return m.charge(times(shallowCost(in), factor)) }
}

func deep(factor int) price {
	return func(m *meter, in any, _ []any) bool { return m.deepTimes(in, factor) }
}

// deepTimes charges for v read factor times.
func (m *meter) deepTimes(v any, factor int) bool {
	cost, ok := m.chargeDeep(v)
	return ok && m.charge(times(cost, factor-1))
}

func deepArgument(m *meter, in any, args []any) bool {
	return m.charge(shallowCost(in)) && m.deepTimes(args[0], 1)
}

// sorted charges as often as a sort compares each element.
func sorted(m *meter, in any, _ []any) bool { return m.deepTimes(in, rounds(in)) }

func sortedArgument(m *meter, in any, args []any) bool {
	return m.charge(times(shallowCost(in), 2)) && m.deepTimes(args[0], rounds(args[0]))
}

func rounds(v any) int {
	list, _ := v.([]any)
	return 1 + bits.Len(uint(len(list)))
}

func halved(m *meter, in any, args []any) bool { return m.deepTimes(args[0], rounds(in)) }

// parts charges for copies of all elements, which share what is inside those.
func parts(m *meter, in any, _ []any) bool {
	if !m.charge(shallowCost(in)) {
		return false
	}
	switch v := in.(type) {
	case []any:
		for _, e := range v {
			if !m.charge(shallowCost(e)) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !m.charge(shallowCost(e)) {
				return false
			}
		}
	}
	return true
}

func joined(m *meter, in any, args []any) bool {
	list, _ := in.([]any)
	return parts(m, in, nil) && m.allocate(times(shallowCost(args[0]), len(list)))
}

func transposed(m *meter, in any, _ []any) bool {
	list, _ := in.([]any)
	longest := 0
	for _, row := range list {
		if row, ok := row.([]any); ok {
			longest = max(longest, len(row))
		}
	}
	return m.charge(shallowCost(in)) && m.allocate(times(times(elementCost, len(list)), longest))
}

// contained charges for the larger value being read for each part of the smaller.
func contained(inside bool) price {
	return func(m *meter, in any, args []any) bool {
		outer, inner := in, args[0]
		if inside {
			outer, inner = inner, outer
		}
		before := m.work
		if !m.walk(inner, 0) {
			return false
		}
		return m.deepTimes(outer, 1+partsOf(before-m.work, inner))
	}
}

// partsOf estimates the number of parts of a value of this cost: text is searched in one go.
func partsOf(cost int, v any) int {
	if _, ok := v.(string); ok {
		return 1
	}
	return cost / (elementCost + scalarCost)
}

// searched charges for a search that compares at every position as long as it finds the same.
func searched(m *meter, in any, args []any) bool {
	switch v := in.(type) {
	case string:
		x, _ := args[0].(string)
		return m.charge(times(2*elementCost, len(v)+len(x))) && m.charge(times(len(v), len(x)/16))
	case []any:
		x, _ := args[0].([]any)
		return m.deepTimes(v, max(1, len(x)))
	}
	return true
}

// counted is for functions whose time grows with their first argument.
func counted(m *meter, _ any, args []any) bool {
	n, _ := number(args[0])
	if math.IsNaN(n) {
		return true
	}
	return m.charge(int(min(8*math.Abs(n), math.MaxInt32)))
}

func formatted(m *meter, in any, args []any) bool {
	// A directive of a few characters can ask for a thousand.
	return m.charge(times(shallowCost(args[0]), 512)) && m.charge(shallowCost(in))
}
