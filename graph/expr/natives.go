package expr

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
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

	"length/0":   length,
	"tostring/0": toString,
	"tojson/0":   toJSON,
	"tonumber/0": toNumber,
	"fromjson/0": fromJSON,
	"split/1":    split,
	"trim/0":     onString("trim", strings.TrimSpace),
	"ltrim/0":    onString("ltrim", func(s string) string { return strings.TrimLeftFunc(s, unicode.IsSpace) }),
	"rtrim/0":    onString("rtrim", func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }),
	"ascii_downcase/0": onString("ascii_downcase", func(s string) string {
		return strings.Map(func(r rune) rune { return shiftCase(r, 'A', 'a') }, s)
	}),
	"ascii_upcase/0": onString("ascii_upcase", func(s string) string {
		return strings.Map(func(r rune) rune { return shiftCase(r, 'a', 'A') }, s)
	}),
	"startswith/1": onStrings("startswith", func(s, x string) any { return strings.HasPrefix(s, x) }),
	"endswith/1":   onStrings("endswith", func(s, x string) any { return strings.HasSuffix(s, x) }),
	"ltrimstr/1":   onStrings("ltrimstr", func(s, x string) any { return strings.TrimPrefix(s, x) }),
	"rtrimstr/1":   onStrings("rtrimstr", func(s, x string) any { return strings.TrimSuffix(s, x) }),
	"trimstr/1":    onStrings("trimstr", func(s, x string) any { return strings.TrimSuffix(strings.TrimPrefix(s, x), x) }),

	"keys/0":       charged("keys", shallow(sortFactor)),
	"add/0":        charged("add", parts),
	"reverse/0":    charged("reverse", shallow(1)),
	"transpose/0":  charged("transpose", transposed),
	"flatten/0":    charged("flatten", deep(1)),
	"flatten/1":    charged("flatten", deep(1)),
	"join/1":       charged("join", joined),
	"explode/0":    charged("explode", shallow(2*elementCost)),
	"implode/0":    charged("implode", shallow(1)),
	"format/1":     charged("format", deep(textGrowth)),
	"contains/1":   charged("contains", contained(false)),
	"inside/1":     charged("inside", contained(true)),
	"index/1":      charged("index", searched),
	"rindex/1":     charged("rindex", searched),
	"indices/1":    charged("indices", searched),
	"bsearch/1":    charged("bsearch", halved),
	"min/0":        charged("min", deep(1)),
	"max/0":        charged("max", deep(1)),
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

	// The engine has no time zone but UTC, and no time but that of the input that it works on.
	"now/0":           now,
	"localtime/0":     charged("gmtime", constant(scalarCost)),
	"strftime/1":      charged("strftime", formatted),
	"strflocaltime/1": charged("strftime", formatted),
	"strptime/1":      parseTime,
}

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
		return faultf("length cannot be applied to: boolean")
	}
	f, _ := number(in)
	return math.Abs(f)
}
