package expr

import (
	"strconv"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

// interpreter returns one of the interpreter's own functions: a compiled call of it, made once and shared.
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
		if err, ok := v.(error); ok {
			return faultf("%s", withoutValues(err))
		}
		return v
	}
	f, _ := interpreterCalls.LoadOrStore(key, call)
	return f.(func(any, []any) any)
}

var interpreterCalls sync.Map // by name and arity
