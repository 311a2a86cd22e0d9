package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// ask reads the answer to a wait from the terminal, until it is valid or the person ends the input with Ctrl-D, which leaves the run waiting.
// It shows the wait, unless the run has just rejected an answer to it.
func (a *app) ask(ctx context.Context, p *view.Pending, again bool) (filled, bool, error) {
	f := filled{asked: true, interruptID: interruptID(p)}
	if p.Kind == machine.WaitSignal {
		f.signal, f.signalKey = p.SignalName, p.ID
	}
	asked := decisions{calls: agentsteps.Approval(p.Show)}
	switch {
	case again:
		a.expect(p, "")
	case f.signal != "":
		a.say("\n%s %s waits for the signal %q. If it has arrived, write its payload, or {}:\n",
			a.paint.wait("?"), a.paint.bold(plainCell(p.NodeID)), p.SignalName)
		a.expect(p, "; Ctrl-D leaves the run waiting")
	default:
		a.say("\n%s an answer is needed\n", a.paint.wait("?"))
		a.describeInterrupt(p)
		a.expect(p, "; Ctrl-D leaves the run waiting")
	}
	for {
		fmt.Fprint(a.stderr, "> ")
		line, err := a.readLine(ctx)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.stderr)
			return filled{}, false, nil
		}
		if err != nil {
			return filled{}, false, err
		}
		switch {
		case asked.calls != nil:
			if f.payload, err = asked.take(line); err == nil && f.payload == nil {
				a.say("%s not decided yet\n", asked.left())
				continue
			}
		case takesWords(p) && !strings.HasPrefix(strings.TrimSpace(line), "{"):
			if f.payload = map[string]any{"text": strings.TrimSpace(line)}; f.payload["text"] == "" {
				err = errors.New("the answer must not be empty")
			}
		case strings.TrimSpace(line) == "" && f.signal != "":
			continue // Enter does not send a signal
		default:
			f.payload, err = parsePayload(line, p.ResumeSchema)
		}
		if err == nil {
			return f, true, nil
		}
		a.say("%s %v\n", a.paint.bad("error:"), err)
		if asked.calls == nil { // those errors list the decisions
			a.expect(p, "")
		}
	}
}

// expect prints the forms of an answer.
func (a *app) expect(p *view.Pending, more string) {
	how := "JSON or key=value …"
	switch calls := agentsteps.Approval(p.Show); {
	case calls != nil:
		if how = decisionsText; len(calls) > 1 {
			how += "; the key of a call first for one of them"
		}
	case takesWords(p):
		how = "your answer"
	case onlyBoolean(p.ResumeSchema) != "":
		how = "yes or no, JSON or key=value …"
	}
	a.say("%s\n", a.paint.faint("  write "+how+more))
}

// readLine reads one line of standard input, or returns when ctx ends. Reading a terminal cannot be cancelled, so
// the reading goroutine may outlive the call; it ends with the process, which is about to.
func (a *app) readLine(ctx context.Context) (string, error) {
	if a.lines == nil {
		a.lines = bufio.NewReader(a.stdin)
	}
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		line, err := a.lines.ReadString('\n')
		if line != "" && errors.Is(err, io.EOF) {
			err = nil // a last line without a line end
		}
		done <- read{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// lineArguments is how many characters of arguments fit in the line of their call.
const lineArguments = 80

// writeCalls prints the calls that an agent wants approved.
func writeCalls(w io.Writer, calls []agentsteps.Ask, indent string) {
	for _, c := range calls {
		text := string(jsonvalue.Canonical(c.Arguments))
		if len(text) > lineArguments {
			if long, err := json.MarshalIndent(c.Arguments, indent, "  "); err == nil {
				text = string(long)
			}
		}
		if len(text) > maxShown {
			text = problem.Clip(text, maxShown) + fmt.Sprintf("\n%s… %d bytes in all: agent transcript shows the rest", indent, len(text))
		}
		fmt.Fprintf(w, "%s%s  %s %s\n", indent, plainCell(c.Key), plainCell(c.Tool), jsonvalue.Plain(text))
		if c.MayHaveHappened {
			fmt.Fprintf(w, "%s  it may have run already: the process died during the call\n", indent)
		}
	}
}

// decisionsText lists the forms of a decision.
const decisionsText = "approve, approve always, deny [REASON], edit NAME=VALUE … or JSON, respond RESULT, stop [REASON]"

// decisions collects the decisions about calls that a person types line by line, until all calls are decided.
type decisions struct {
	calls   []agentsteps.Ask
	decided map[string]any
}

// take reads a line: a decision about all undecided calls, or about the call with the key before it. It returns the answer once all are
// decided.
func (d *decisions) take(line string) (map[string]any, error) {
	if strings.HasPrefix(strings.TrimSpace(line), "{") {
		return parsePayload(line, nil)
	}
	first, rest := word(line)
	var about []agentsteps.Ask
	if i := slices.IndexFunc(d.calls, func(c agentsteps.Ask) bool { return c.Key == first }); i >= 0 {
		about = d.calls[i : i+1]
		first, rest = word(rest)
	} else {
		for _, c := range d.calls {
			if _, has := d.decided[c.Key]; !has {
				about = append(about, c)
			}
		}
	}
	for _, c := range about {
		one, err := decision(first, rest, c, len(about) > 1)
		if err != nil {
			return nil, err
		}
		if d.decided == nil {
			d.decided = map[string]any{}
		}
		d.decided[c.Key] = one
	}
	if len(d.decided) < len(d.calls) {
		return nil, nil
	}
	if len(d.calls) == 1 {
		return d.decided[d.calls[0].Key].(map[string]any), nil
	}
	return map[string]any{"calls": maps.Clone(d.decided)}, nil
}

// left names the calls without a decision.
func (d *decisions) left() string {
	var keys []string
	for _, c := range d.calls {
		if _, has := d.decided[c.Key]; !has {
			keys = append(keys, c.Key)
		}
	}
	return problem.AndList(keys)
}

func word(line string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
	return first, strings.TrimSpace(rest)
}

// decision reads a typed decision about a call. The digest binds it to the shown arguments.
func decision(verb, rest string, c agentsteps.Ask, several bool) (map[string]any, error) {
	d := map[string]any{"decision": verb}
	if c.Digest != "" {
		d["digest"] = c.Digest
	}
	switch verb {
	case "approve":
		switch rest {
		case "":
		case "always":
			d["remember"] = true
		default:
			return nil, fmt.Errorf("approve takes no %q: write approve or approve always", rest)
		}
	case "deny", "stop":
		if rest != "" {
			d["reason"] = rest
		}
	case "edit":
		arguments, err := edited(rest, c.Arguments)
		if several || err != nil || rest == "" {
			return nil, firstError(err, fmt.Errorf("write the arguments after the key and edit, as in %s edit %s", c.Key, jsonvalue.Canonical(c.Arguments)))
		}
		d["arguments"] = arguments
	case "respond":
		if several || rest == "" {
			return nil, fmt.Errorf("write the result after the key and respond, as in %s respond \"done by hand\"", c.Key)
		}
		d["result"] = typed(rest, nil)
	default:
		return nil, fmt.Errorf("%q is not a decision: write %s", verb, decisionsText)
	}
	return d, nil
}

// edited returns arguments with the changes of a person: JSON in their place, or NAME=VALUE for some of them. A string stays a string.
func edited(text string, arguments map[string]any) (map[string]any, error) {
	if strings.HasPrefix(text, "{") {
		return parsePayload(text, nil)
	}
	properties := map[string]any{}
	for name, v := range arguments {
		if _, isText := v.(string); isText {
			properties[name] = map[string]any{"type": "string"}
		}
	}
	changed, err := parsePayload(text, map[string]any{"properties": properties})
	if err != nil {
		return nil, err
	}
	for _, name := range jsonvalue.Keys(changed) {
		if _, has := arguments[name]; !has { // a misspelt name would leave the argument unchanged, and the call would be made
			return nil, fmt.Errorf("the call has no argument %q; write all arguments as JSON to add it. %s", name, suggest.DidYouMean(name, jsonvalue.Keys(arguments)))
		}
	}
	out := maps.Clone(arguments)
	maps.Copy(out, changed)
	return out, nil
}

// takesWords reports whether the answer to a question is a typed line: an agent asks a person without a form.
func takesWords(p *view.Pending) bool {
	required := requiredNames(p.ResumeSchema)
	return agentsteps.AsksPerson(p.Show) && len(required) == 0 && propertySchema(p.ResumeSchema, "text")["type"] == "string"
}

// parsePayload reads the input of a person: a JSON object, or words of the form key=value. A value has the type of its key in the schema,
// with yes and no for booleans; without a type it is JSON if it can be, else text. A lone yes or no answers the only boolean of the schema.
func parsePayload(line string, schema map[string]any) (map[string]any, error) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "{") {
		node, faults := jsonvalue.Parse([]byte(line), 0, 0)
		if len(faults) > 0 {
			return nil, faults[0]
		}
		object, _ := node.Value().(map[string]any)
		return object, nil
	}
	words, err := splitWords(line)
	if err != nil {
		return nil, err
	}
	payload := map[string]any{}
	for _, word := range words {
		key, text, ok := strings.Cut(word, "=")
		if name := onlyBoolean(schema); !ok && len(words) == 1 && name != "" {
			if yes, understood := yesOrNo(word); understood {
				return map[string]any{name: yes}, nil
			}
			return nil, fmt.Errorf("%q must be yes, no, JSON or key=value", word)
		}
		if !ok || key == "" {
			return nil, fmt.Errorf("%q must be JSON or key=value", word)
		}
		payload[key] = typed(text, propertySchema(schema, key))
	}
	return payload, nil
}

// typed reads the text of one value.
func typed(text string, schema map[string]any) any {
	if schema["type"] == "string" {
		return text
	}
	if schema["type"] == "boolean" {
		if yes, understood := yesOrNo(text); understood {
			return yes
		}
	}
	node, faults := jsonvalue.Parse([]byte(text), 0, 0)
	if len(faults) > 0 {
		return text
	}
	value := node.Value()
	// A list of allowed values settles whether 7 is a number or a text.
	if allowed, ok := schema["enum"].([]any); ok && !contains(allowed, value) && contains(allowed, text) {
		return text
	}
	return value
}

// yesOrNo reads a word that stands for a boolean.
func yesOrNo(word string) (yes, understood bool) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "yes", "y", "true":
		return true, true
	case "no", "n", "false":
		return false, true
	}
	return false, false
}

// onlyBoolean returns the field that a lone yes or no answers: the only required field, or the only field, if it is a boolean; else "".
func onlyBoolean(schema map[string]any) string {
	names := requiredNames(schema)
	if len(names) == 0 {
		properties, _ := schema["properties"].(map[string]any)
		names = jsonvalue.Keys(properties)
	}
	if len(names) == 1 && propertySchema(schema, names[0])["type"] == "boolean" {
		return names[0]
	}
	return ""
}

func contains(list []any, v any) bool {
	for _, e := range list {
		if jsonvalue.Equal(e, v) {
			return true
		}
	}
	return false
}

// splitWords splits at blanks outside quotes. Quotes, single or double, may occur anywhere in a word: a="two words".
func splitWords(line string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		open  bool // a word has started
		quote rune
	)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

// answer is a prepared input of a waiting run: a payload for an interrupt, or a signal.
type answer struct {
	signal  string         // "" for an interrupt
	payload string         // as written on the command line
	object  map[string]any // the payload, once read
}

// answers collects --resume and --signal flags in the order of the command line.
type answers []answer

// register adds the two flags to a set.
func (as *answers) register(set *pflag.FlagSet) {
	set.Func("resume", "answer the next interrupt with this `JSON` object; may be repeated, used in order", func(text string) error {
		*as = append(*as, answer{payload: text})
		return nil
	})
	set.Func("signal", "deliver a signal when the run waits, as `NAME=JSON`; may be repeated, used in order", func(text string) error {
		name, payload, _ := strings.Cut(text, "=")
		if strings.TrimSpace(name) == "" {
			return usage(`a signal needs a name, as in approved={"by":"kim"}`)
		}
		*as = append(*as, answer{signal: name, payload: payload})
		return nil
	})
}

// take removes the first answer.
func (as *answers) take() (first answer, ok bool) {
	if len(*as) == 0 {
		return answer{}, false
	}
	first, *as = (*as)[0], (*as)[1:]
	return first, true
}

// read reads every payload, so that a typing error is reported before the run starts.
func (as answers) read(a *app) (err error) {
	for i := range as {
		flag := "--resume"
		if as[i].signal != "" {
			flag = "--signal " + as[i].signal
		}
		if as[i].object, err = a.readObject(flag, as[i].payload); err != nil {
			return err
		}
	}
	return nil
}

// awaited rejects signals that a definition never waits for. A subworkflow may wait for any.
func (as answers) awaited(program *definition.Program) error {
	var names []string
	for _, n := range program.Nodes {
		if n.Subworkflow != nil {
			return nil
		}
		if n.Wait != nil && n.Wait.Signal != "" {
			names = append(names, n.Wait.Signal)
		}
	}
	for _, answer := range as {
		switch {
		case answer.signal == "" || slices.Contains(names, answer.signal):
		case len(names) == 0:
			return usage("--signal: the definition does not wait for signals, found %q", answer.signal)
		default:
			return usage("--signal: the definition does not wait for a signal %q", answer.signal).
				WithHint("It waits for %s.", strings.Join(names, ", "))
		}
	}
	return nil
}
