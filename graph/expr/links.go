package expr

import (
	"strconv"

	"github.com/itchyny/gojq"
)

// The interpreter finds a variable of an outer function by walking from scope to scope, and the outer scope of a call
// is its caller's: where functions call each other, or themselves in arguments of calls, the walk has as many scopes
// as calls are unfinished. Functions in which that matters get a parameter with the number of scopes behind them, and
// reading a variable from outside them is charged for the walk. A parameter follows the program back and forth by
// itself.

const (
	// linksParameter cannot be written in a program.
	linksParameter = "$ links"
	// manyLinks is the length of a way that is charged for.
	manyLinks = 16
	// linksPerUnit is how many scopes are passed in the time of a unit.
	linksPerUnit = 4
)

// between returns the number of scopes on the way from a body to one around it, but for those that carry them, and whether there
// may be more than manyLinks of them because of calls.
func between(from, to *body) (links int, deep bool) {
	for ; from != to; from = from.outer {
		links += 1 + from.links
		deep = deep || from.deep()
	}
	return links, deep
}

// deep reports whether calls make the walk from a function to its surroundings long.
func (b *body) deep() bool { return b.links >= manyLinks }

// countLinks finds the functions with long walks and charges for reading over them.
func (o *outline) countLinks() {
	for again := true; again; {
		again = false
		for i := len(o.calls) - 1; i >= 0; i-- { // callers stand behind what they call
			c := o.calls[i]
			if c.at == c.to || c.to.deep() { // a call of itself, directly, adds none
				continue
			}
			if links, _ := between(c.at, c.to.outer); links > c.to.links {
				c.to.links, again = min(links, manyLinks), true
			}
		}
	}
	for _, u := range o.uses {
		carry(u.at, u.home)
	}
	for again := true; again; {
		again = false
		for _, c := range o.calls {
			if c.to.carries && carry(c.at, c.to.outer) {
				again = true
			}
		}
	}
	for _, u := range o.uses {
		if links, deep := between(u.at, u.home); deep || links > manyLinks {
			u.behind(o.way(u.at, u.home))
		}
	}
	for _, c := range o.calls {
		if c.to.carries {
			c.call.Name = carrying(c.call.Name)
			c.call.Args = append(c.call.Args, o.behind(c))
		}
	}
	o.rename()
}

// carry lets the functions with long ways between two bodies carry their lengths, and reports whether any did not yet.
func carry(from, to *body) (changed bool) {
	for ; from != to; from = from.outer {
		if from.deep() && !from.carries {
			from.carries, changed = true, true
		}
	}
	return changed
}

// way is a query that charges for the way from one body to another and returns its input.
func (o *outline) way(from, to *body) *gojq.Query {
	links := 0
	for ; from != to; from = from.outer {
		if from.carries {
			return o.r.made("_way "+strconv.Itoa(links), 1, way(links), variable(linksParameter))
		}
		links += 1 + from.links
	}
	return o.r.made("_way "+strconv.Itoa(links), 0, way(links))
}

// behind is a query for the number of scopes behind a call.
func (o *outline) behind(c callSite) *gojq.Query {
	if c.at == c.to {
		return variable(linksParameter)
	}
	links := 1
	for at := c.at; at != nil; at = at.outer {
		if at.carries {
			return pipe(variable(linksParameter), o.r.made("_further "+strconv.Itoa(links), 0, further(links)), "")
		}
		links += 1 + at.links
		if at.deep() {
			break // nothing that is called here reads further
		}
	}
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: strconv.Itoa(links)}}
}

// rename gives the functions that carry their parameter, and another name: there may be one with as many parameters.
func (o *outline) rename() {
	done := map[*body]bool{}
	for _, c := range o.calls {
		if f := c.to; f.carries && !done[f] {
			done[f] = true
			f.def.Name = carrying(f.def.Name)
			f.def.Args = append(f.def.Args, linksParameter)
		}
	}
}

func carrying(name string) string { return "far " + name }

// way is a native that returns its input and charges for passing links scopes, plus the number in its argument.
func way(links int) native {
	return func(m *meter, in any, args []any) any {
		passed := links
		if len(args) > 0 {
			passed += args[0].(int)
		}
		if !m.spend(passed / linksPerUnit) {
			return m.exceeded
		}
		return in
	}
}

// further is a native that adds to a number of scopes.
func further(links int) native {
	return func(_ *meter, in any, _ []any) any { return in.(int) + links }
}
