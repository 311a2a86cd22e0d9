package definition

import (
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Values that a question or a wait takes from the state (the extension templates).

var waitTemplatesShape = objectOf("wait_templates",
	member{"duration", filled("the duration of wait_templates").or(`write a text with a program in it, for example "${ .hours }h"`).
		about("For a wait of kind duration.", `"${ .hours }h"`), false},
	member{"until", filled("the until of wait_templates").or(`write a text with a program in it, for example "${ .deadline }"`).
		about("For a wait of kind until.", `"${ .deadline }"`), false},
).called("wait_templates").
	about("Strings with ${ program } in them that compute the time of a wait from the state. If the string is blank, the config has the time. Extension templates.")

// compileTemplates reads the members of the extension templates. A node whose template does not compile fails where it is reached.
func (c *compiler) compileTemplates(v *vertex) {
	x := config{c: c, v: v}
	if n := v.json.Get("prompt_templates"); n != nil && v.node.Interrupt != nil {
		c.used[ExtensionTemplates] = true
		if prompt := v.json.Get("config").Get("prompt"); n.Bool && prompt != nil {
			v.node.Interrupt.Template = x.template(prompt, v.at.member("config").member("prompt"))
		}
	}
	if n := v.json.Get("show"); n != nil && v.node.Interrupt != nil {
		c.used[ExtensionTemplates] = true
		v.node.Interrupt.Show = x.program(n, v.at.member("show"))
	}
	n := v.json.Get("wait_templates")
	if n == nil || v.node.Wait == nil {
		return
	}
	c.used[ExtensionTemplates] = true
	for name, kind := range map[string]WaitKind{"duration": WaitDuration, "until": WaitUntil} {
		text, at := n.Get(name), v.at.member("wait_templates").member(name)
		switch {
		case text == nil:
		case v.node.Wait.Kind != kind:
			c.warn(problem.FieldIgnored, text, at, v, "a wait of kind \""+string(v.node.Wait.Kind)+"\" does not read "+name, "")
		default:
			v.node.Wait.Template = x.template(text, at)
		}
	}
}

// template compiles a text that fails the node where it is wrong: nil then, and the node is blocked.
func (x *config) template(n *jsonvalue.Node, at *path) *expr.Template {
	t, err := expr.ParseTemplate(n.Str)
	if err != nil {
		x.c.fail(problem.ExpressionInvalid, n, at, x.v, err.Error(), hintOf(err))
		return nil
	}
	for _, program := range t.Programs() {
		x.c.addSource(program, at, x.v)
	}
	return t
}

// TemplateTime reads the output of a wait's template. A blank text leaves the time as it is written in the config.
func (w *WaitConfig) TemplateTime(text string) (*WaitConfig, error) {
	timed := *w
	if expr.TrimSpace(text) == "" {
		return &timed, nil
	}
	var err error
	if w.Kind == WaitDuration {
		timed.DurationMS, err = parseMilliseconds(text)
		return &timed, err
	}
	at, _, ok := parseInstant(text)
	if !ok {
		return nil, problem.New(problem.InstantInvalid, "invalid instant %q", clip(text)).WithHint(instantHint)
	}
	timed.Until, timed.UntilAt = text, at
	return &timed, nil
}
