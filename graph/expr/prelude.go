package expr

import (
	_ "embed" // the prelude's text
	"sync"

	"github.com/itchyny/gojq"
)

//go:embed prelude.jq
var preludeText string

// preludeFunction is a rewritten definition of the prelude. Definitions are shared by all programs and never changed.
type preludeFunction struct {
	signature string
	def       *gojq.FuncDef
	natives   map[string]native
	// needs are the functions it calls without defining them.
	needs map[string]bool
}

var prelude = sync.OnceValue(func() []preludeFunction {
	query, err := gojq.Parse(preludeText + ".")
	if err != nil {
		panic("expr: the prelude: " + err.Error())
	}
	functions := make([]preludeFunction, len(query.FuncDefs))
	for i, def := range query.FuncDefs {
		r := newRewriter()
		r.inPrelude = true
		r.function(def)
		functions[i] = preludeFunction{signature(def.Name, len(def.Args)), def, r.natives, r.free}
	}
	return functions
})

// withPrelude prepends the functions of the prelude that a rewritten program needs.
func (r *rewriter) withPrelude(query *gojq.Query) {
	all := prelude()
	wanted := make([]bool, len(all))
	count := 0
	// A function needs only those above it, so that one pass from below finds all.
	for i := len(all) - 1; i >= 0; i-- {
		if !r.free[all[i].signature] {
			continue
		}
		wanted[i] = true
		count++
		for name := range all[i].needs {
			r.free[name] = true
		}
		for name, f := range all[i].natives {
			r.natives[name] = f
		}
	}
	if count == 0 {
		return
	}
	defs := make([]*gojq.FuncDef, 0, count+len(query.FuncDefs))
	for i, f := range all {
		if wanted[i] {
			defs = append(defs, f.def)
		}
	}
	query.FuncDefs = append(defs, query.FuncDefs...)
}
