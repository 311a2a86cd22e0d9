package definition

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Catch is the place where a run continues after a failure of a node (the extensions catch and on_timeout). Its retries come first.
type Catch struct {
	// Codes are the codes of failures that are caught; "*" in a code stands for any text, and "*" alone for failures without a code
	// too.
	Codes []string
	// Target is the node where the run, or the branch, continues.
	Target *Node
	// As is the field of the state that gets the error; "" drops it.
	As string
	// Rollback runs the compensations of the run, or of the branch, first; see Compensation.
	Rollback bool
}

// CaughtBy returns the first Catch of the node for a code, or nil.
func (n *Node) CaughtBy(code string) *Catch {
	for i := range n.Catches {
		for _, pattern := range n.Catches[i].Codes {
			if matches(pattern, code) {
				return &n.Catches[i]
			}
		}
	}
	return nil
}

// matches reports whether a pattern matches the whole of a code; "*" in it matches any string.
func matches(pattern, code string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == code
	}
	if len(code) < len(first)+len(last) || !strings.HasPrefix(code, first) || !strings.HasSuffix(code, last) {
		return false
	}
	code = code[len(first) : len(code)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(code, part)
		if !found {
			return false
		}
		code = rest
	}
	return true
}

// catchMember and onTimeoutMember are the fields that lead on from a failed node.
var (
	catchMember = extended{member{"catch", listOf("catch", objectOf("a catch",
		member{"codes", listOf("the codes of a catch", filled("a code")).nonEmpty().or(`write a list such as ["TIMEOUT"] or ["*"]`).
			about("Codes of failures. * in a code matches any string; * alone matches every failure, also one without a code.", `["TIMEOUT", "LLM_*"]`, `["*"]`), true},
		member{"target", filled("the target of a catch").
			about("The id of the node where the run continues; in a branch, a node of the branch or its join target."), true},
		member{"as", filled("the as of a catch").or("name the field of the state that gets the error").
			about("The property of the state for the error: an object with code, message, node and, if there are any, attempts and data. It is combined with the state like an output."), false},
	).not(map[string]string{
		"code": `write "codes", a list`, "errors": `write "codes"`, "next": `write "target"`, "node": `write "target"`,
	}).with(rollbackOfCatch)).nonEmpty().called("catch").
		about("Where the run continues after the last attempt of the node has failed: at the first entry whose codes match the failure. Extension catch."), false}, ExtensionCatch}
	onTimeoutMember = extended{member{"on_timeout", filled("on_timeout").or("name the node where the run continues").called("on_timeout").
			about("The id of the node where the run continues after the timeout in the config. Extension on_timeout."), false}, ExtensionOnTimeout}
)

// followCatches resolves the catches of a node. It runs before the flow of the graph is checked.
func (c *compiler) followCatches(v *vertex) {
	if !v.sound {
		return
	}
	if n := v.json.Get("on_timeout"); n != nil {
		c.used[ExtensionOnTimeout] = true
		c.addCatch(v, Catch{Codes: []string{string(problem.Timeout)}}, n, v.at.member("on_timeout"))
		if v.json.Get("config").Get("timeout") == nil && !v.strangers {
			c.warn(problem.FieldIgnored, n, v.at.member("on_timeout"), v, "the node has no timeout, so on_timeout is never followed",
				`add "timeout" to the config, for example "24h"`)
		}
	}
	list := v.json.Get("catch")
	if list == nil {
		return
	}
	c.used[ExtensionCatch] = true
	all := false
	for i, n := range list.Elements {
		at := v.at.member("catch").element(i)
		if all {
			c.warn(problem.FieldIgnored, n, at, v, `a catch before this one catches "*", so this one is never used`, "move the catch of * to the end")
		}
		k := Catch{}
		for _, code := range n.Get("codes").Elements {
			k.Codes = append(k.Codes, expr.TrimSpace(code.Str))
			all = all || code.Str == "*"
		}
		if as := n.Get("as"); as != nil {
			k.As = as.Str
		}
		rollback := n.Get("rollback")
		k.Rollback = rollback != nil && rollback.Bool
		c.addCatch(v, k, n.Get("target"), at.member("target"))
	}
}

func (c *compiler) addCatch(v *vertex, k Catch, target *jsonvalue.Node, at *path) {
	to := c.byID[target.Str]
	if to == nil {
		if !c.named(target.Str) {
			c.danglingEdge = true
			c.fail(problem.UnknownNode, target, at, v, fmt.Sprintf("there is no node %q", clip(target.Str)), c.suggest(target.Str))
		}
		return
	}
	k.Target = to.node
	v.node.Catches = append(v.node.Catches, k)
	v.catches = append(v.catches, to)
}
