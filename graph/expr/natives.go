package expr

// natives are the functions that programs call in place of the interpreter's own, by name and arity. Most charge for
// what the interpreter's function will do and then call it; a few are defined anew. Names that begin with an underscore
// are for the prelude and for rewritten operators.
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
	"_captures/0": charged("_captures", captured),
	"_splits/2":   splitRegexp,
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
	"ascii_downcase/0": charged("ascii_downcase", characters),
	"ascii_upcase/0":   charged("ascii_upcase", characters),
	"startswith/1":     charged("startswith", shorter),
	"endswith/1":       charged("endswith", shorter),
	"ltrimstr/1":       charged("ltrimstr", shorter),
	"rtrimstr/1":       charged("rtrimstr", shorter),
	"trimstr/1":        charged("trimstr", shorter),

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

// touch returns its input and charges for what the iteration or slicing that follows will do with it: the
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
