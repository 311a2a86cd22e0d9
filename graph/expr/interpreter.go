package expr

import (
	"strconv"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

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
