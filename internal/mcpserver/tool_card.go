package mcpserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// cardTools returns the tools for clients that show cards: one that shows a run, and those that the card calls.
func cardTools(offered toolset) toolset {
	reads := mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)}
	list := toolset{
		{
			name: "workflow_show", title: "Show a run to the person", annotations: reads, invalid: problem.ValidationError,
			description: "Shows a run to the person as a card: its question with a form, and its graph, live.",
			arguments:   []property{calls.ExecutionIDArgument},
			call:        showRun,
		},
		{
			name: "workflow_card", title: "Read the card of a run", annotations: reads, invalid: problem.ValidationError,
			description: "For the card.",
			arguments:   []property{calls.ExecutionIDArgument, calls.StatusWaitArgument, calls.SinceArgument, visitsArgument},
			call:        readCard,
		},
	}
	if offered.has("workflow_resume") {
		list = append(list, &tool{
			name: "workflow_card_answer", title: "Answer in the card of a run", invalid: problem.InvalidResumePayload,
			annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
			description: "For the card, which has the ticket.",
			arguments: []property{
				calls.Required("ticket", calls.Text("The ticket of the question that was shown.")),
				calls.Required("fields", calls.Obj("The fields of the form by their names, a list of texts each.")),
			},
			call: answerCard,
		})
	}
	return list
}

var visitsArgument = calls.Optional("visits", calls.Describe("boolean", "Add the visits (default false)."))

// showRun is workflow_show.
func showRun(ctx context.Context, s *server, a *arguments) (*answer, error) {
	id := a.Require("execution_id").NonEmpty()
	if err := a.Problem(); err != nil {
		return nil, err
	}
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: id})
	if err != nil {
		return nil, err
	}
	note := "The card stays live by itself: do not show the run again."
	headline := fmt.Sprintf("The person sees execution %s, which is %s, in a card.", shownID(run.ExecutionID), runjson.Phase(run.Status))
	if interruptOf(run, "") != nil && s.cardTools.has("workflow_card_answer") {
		headline += " They answer its question there: do not ask them, and do not answer for them."
	}
	next := call("workflow_status", members{{"execution_id", run.ExecutionID}, {"wait_ms", float64(nextWaitMS)}}, note)
	return &answer{
		headline: headline, lines: next.lines(), page: true,
		content: members{{"execution_id", run.ExecutionID}, {"phase", string(runjson.Phase(run.Status))}, {"seq", float64(run.Seq)}, {"next", next.members()}},
	}, nil
}

// readCard is workflow_card.
func readCard(ctx context.Context, s *server, a *arguments) (*answer, error) {
	req := graph.StatusRequest{ExecutionID: a.Require("execution_id").NonEmpty(), Since: a.since}
	if wait := a.waiting(a.Wait()); wait.Limit > 0 {
		wait.End = a.hangup.looking
		req.Wait = &wait
	}
	visits := a.Get(visitsArgument.Name).Bool()
	if err := a.Problem(); err != nil {
		return nil, err
	}
	run, err := s.Status(ctx, req)
	if err != nil {
		return nil, err
	}
	if a.since > 0 && run.Seq == a.since {
		content := members{{"execution_id", run.ExecutionID}, {"seq", float64(run.Seq)}, {"ended", run.Status.Terminal()}}
		if origin := s.pageOrigin(ctx); origin != "" {
			content.Put("page", origin+fragment.RunPath(run.ExecutionID))
		}
		return &answer{headline: "Nothing has changed.", page: true, content: content}, nil
	}
	content, err := s.cardOf(ctx, a.asking, run, shownAnswer{visits: visits})
	if err != nil {
		return nil, err
	}
	return &answer{headline: fmt.Sprintf("The card of execution %s.", shownID(run.ExecutionID)), content: content, page: true}, nil
}

// answerCard is workflow_card_answer. A ticket shows that the answer is to a question that this server has shown to the same client. It
// is no proof of a person, because a caller can send what a card sends: with elicit.Required the host asks the person once more.
func answerCard(ctx context.Context, s *server, a *arguments) (*answer, error) {
	sealed, fields := a.Require("ticket").NonEmpty(), calls.ReadObject(a.Require("fields"))
	if err := a.Problem(); err != nil {
		return nil, err
	}
	k := a.asking
	key, err := s.ticketKey(ctx)
	if err != nil {
		return nil, err
	}
	t, err := elicit.Open(key, sealed, time.Now())
	switch {
	case errors.Is(err, elicit.ErrExpired):
		return nil, problem.New(problem.ValidationError, "the ticket of the card has expired").WithHint("Show the run again with workflow_show.")
	case err != nil || t.Card == "" || t.Session != k.cardSession():
		return nil, problem.New(problem.ValidationError, "the ticket does not belong to a card of this client").WithHint("Show the run again with workflow_show.")
	}
	c := cardAnswer{server: s, a: a, values: textsOf(fields)}
	if k.answer != nil { // the host comes back with the person's confirmation
		if c.run, err = s.drive(ctx, a, func() (*view.Run, error) { return nil, errors.New("an answer without a question") }); err != nil {
			return nil, err
		}
		return c.after(ctx, t.InterruptID, "")
	}
	if c.run, err = s.Status(ctx, graph.StatusRequest{ExecutionID: t.ExecutionID}); err != nil {
		return nil, err
	}
	p := pendingInterrupt(c.run, t.InterruptID)
	if p == nil {
		return c.late(ctx, t.InterruptID)
	}
	if s.shownDigest(p) != t.Card {
		return c.shown(ctx, "The question has changed since it was shown. Nothing was recorded: read it again.", nil, nil)
	}
	payload, mistakes := fragment.AnswerOf(p, s.hide, c.values)
	if len(mistakes) > 0 {
		return c.shown(ctx, "The answer was not recorded: see the fields.", nil, map[string]*fragment.Filled{p.ID: {Values: c.values, Mistakes: mistakes}})
	}
	if s.opts.Elicit == elicit.Required {
		return c.confirm(ctx, p, payload)
	}
	actor := k.actor
	actor.Via = "app"
	run, err := s.Resume(graph.WithActor(ctx, actor), graph.ResumeRequest{
		ExecutionID: t.ExecutionID, InterruptID: t.InterruptID, Payload: payload, Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}},
	})
	switch end := recorded(err, payload); end.State {
	case elicit.Answered:
		c.run = run
		return c.after(ctx, t.InterruptID, decisionOf(p, payload))
	case elicit.Unfit:
		return c.refused(ctx, p, payload, end.Err)
	case elicit.Overtaken:
		if c.run, err = s.Status(ctx, graph.StatusRequest{ExecutionID: t.ExecutionID}); err != nil {
			return nil, err
		}
		return c.late(ctx, t.InterruptID)
	}
	return nil, err
}

// late is the answer of a call whose question has ended: it may be the same call again.
func (c *cardAnswer) late(ctx context.Context, interrupt string) (*answer, error) {
	id := c.run.ExecutionID
	e := &fragment.Ended{Key: strings.TrimPrefix(interrupt, view.Key(id, ""))}
	for from, known := int64(1), false; from <= c.run.Seq && !known; from += cardRecords {
		records, err := c.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: cardRecords})
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(records) && !known; i++ {
			known = e.Record(&records[i])
		}
	}
	var schema map[string]any
	if program := c.program(ctx, c.run); program != nil && e.Asked != nil {
		if n := program.Node(e.Asked.Payload.NodeID); n != nil && n.Interrupt != nil {
			schema = n.Interrupt.ResumeSchemaRaw
		}
	}
	switch {
	case e.Repeats(schema, c.hide, c.values):
		return c.shown(ctx, "This answer is recorded"+e.Told()+".", nil, nil)
	case e.By() != "":
		return c.shown(ctx, "Another answer came first"+e.Told()+". Nothing was recorded now.", nil, nil)
	}
	return c.shown(ctx, "The run no longer waits for this answer. Nothing was recorded now.", nil, nil)
}

// cardAnswer is an answer in a card.
type cardAnswer struct {
	*server
	a      *arguments
	run    *view.Run
	values map[string][]string
}

// confirm has the host ask the person, with the card's answer filled in.
func (c *cardAnswer) confirm(ctx context.Context, p *view.Pending, payload map[string]any) (*answer, error) {
	k := c.a.asking
	if !k.can(p) {
		return nil, k.personRequired(c.run.ExecutionID)
	}
	if filled, err := elicit.FormOf(withDefaults(formSchema(p), payload), k.revision); err == nil {
		k.forms[p.ID] = filled
	}
	k.again, k.only = true, p.ID
	if end, more := k.state(p); !more && end.State != elicit.Asking {
		return nil, k.cannotAsk(c.a, c.run, p)
	}
	run, question, err := c.ask(ctx, c.a, c.run)
	if err != nil || question != nil {
		return question, err
	}
	c.run = run
	return c.after(ctx, p.ID, "") // the person may have changed the answer
}

// decisionOf returns the decision of a payload in a word, "" for an answer that is more than one.
func decisionOf(p *view.Pending, payload map[string]any) string {
	f, err := form.Of(p.ResumeSchema)
	if err != nil || f.Decision() == nil {
		return ""
	}
	if payload[f.Decision().Name] == true {
		return ": approved"
	}
	return ": denied"
}

// withDefaults returns a schema of an object whose fields have the values of a payload as defaults.
func withDefaults(schema, payload map[string]any) map[string]any {
	changed := map[string]any{}
	for k, v := range schema {
		changed[k] = v
	}
	properties := map[string]any{}
	given, _ := schema["properties"].(map[string]any)
	for name, property := range given {
		one, isObject := property.(map[string]any)
		value, filled := payload[name]
		if !isObject || !filled {
			properties[name] = property
			continue
		}
		with := map[string]any{}
		for k, v := range one {
			with[k] = v
		}
		with["default"] = value
		properties[name] = with
	}
	changed["properties"] = properties
	return changed
}

// after is the answer of a call after which an interrupt has been answered, or not. decision is for the model.
func (c *cardAnswer) after(ctx context.Context, interrupt, decision string) (*answer, error) {
	if pendingInterrupt(c.run, interrupt) != nil {
		return c.shown(ctx, "The answer was not confirmed: nothing was recorded.", nil, nil)
	}
	ans, err := c.shown(ctx, "The answer is recorded.", nil, nil)
	if err == nil {
		ans.content.Put("taken", true)
		ans.content.Put("context", fmt.Sprintf("The person answered a question of run %s in its card%s. Call workflow_status to continue.", shownID(c.run.ExecutionID), decision))
	}
	return ans, err
}

// refused is the answer of a call whose payload breaks the schema.
func (c *cardAnswer) refused(ctx context.Context, p *view.Pending, payload map[string]any, reason error) (*answer, error) {
	filled := &fragment.Filled{Values: c.values, Mistakes: fragment.MistakesOf(p.ResumeSchema, payload, c.values)}
	failure := &fragment.Failure{Message: "The answer was not recorded: " + reason.Error()}
	return c.shown(ctx, "The answer was not recorded.", failure, map[string]*fragment.Filled{p.ID: filled})
}

// shown is an answer with the card anew. said is for the person.
func (c *cardAnswer) shown(ctx context.Context, said string, refused *fragment.Failure, filled map[string]*fragment.Filled) (*answer, error) {
	content, err := c.cardOf(ctx, c.a.asking, c.run, shownAnswer{refused: refused, filled: filled})
	if err != nil {
		return nil, err
	}
	content.Put("said", said)
	return &answer{headline: said, content: content, page: true}, nil
}

// cardSession identifies the client that a ticket is for, as well as the revision allows: newer ones have no sessions.
func (k *asking) cardSession() string {
	id := ""
	if k.host != nil && !k.byTicket() {
		id = k.host.ID()
	}
	return digestOf(k.actor.Name + "\x00" + id)
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// hide takes the secrets out of a value.
func (s *server) hide(v any) any { return s.opts.Redaction.Value(v) }

// shownDigest is the digest of a question as it is shown.
func (s *server) shownDigest(p *view.Pending) string {
	html, err := fragment.Render(fragment.AskOf(p, s.hide, fragment.Post{}, nil))
	if err != nil {
		return ""
	}
	return digestOf(string(html))
}

// pageOrigin returns the origin of the page that shows the runs, "" without one.
func (s *server) pageOrigin(ctx context.Context) string {
	if s.opts.Page == nil {
		return ""
	}
	return s.opts.Page(ctx)
}

// shownAnswer is what a card shows besides the run.
type shownAnswer struct {
	// refused is why an answer was not recorded; filled has the input of rejected forms by interrupt.
	refused *fragment.Failure
	filled  map[string]*fragment.Filled
	visits  bool
}

// cardOf is the structured content of a card.
func (s *server) cardOf(ctx context.Context, k *asking, run *view.Run, more shownAnswer) (members, error) {
	c := &fragment.Card{ID: run.ExecutionID, Title: run.Title, Workflow: run.DefinitionName, State: fragment.StatusState(run.Status), Refused: more.refused}
	questions, waits, origin := []members{}, map[string]int{}, s.pageOrigin(ctx)
	for i := range run.Pending {
		p := &run.Pending[i]
		if p.Kind != machine.WaitInterrupt || p.ID == "" {
			wait := fmt.Sprintf("Waits at %s (%s)", p.NodeID, p.Kind)
			if waits[wait]++; waits[wait] == 1 {
				c.Waits = append(c.Waits, wait)
			}
			continue
		}
		ticket, err := s.cardTicket(ctx, k, run, p)
		if err != nil {
			return nil, err
		}
		q := fragment.AskOf(p, s.hide, fragment.Post{Token: fragment.FormToken(ticket)}, more.filled[p.ID])
		if ticket == "" {
			q.Form = nil
		} else {
			one := members{{"interrupt_id", p.ID}, {"ticket", ticket}}
			if origin != "" {
				one.Put("page", origin+fragment.QuestionPath(p.ExecutionID, strings.TrimPrefix(p.ID, view.Key(p.ExecutionID, ""))))
			}
			questions = append(questions, one)
		}
		c.Questions = append(c.Questions, fragment.CardQuestion{Key: p.ID, Question: q})
	}
	for i, wait := range c.Waits { // branches and items wait at one node
		if n := waits[wait]; n > 1 {
			c.Waits[i] = fmt.Sprintf("%s, %d times", wait, n)
		}
	}
	switch run.Status {
	case machine.Failed, machine.Cancelled:
		c.Error = run.Error
	case machine.Completed:
		if run.Result != nil {
			c.Result = fragment.NewValue(s.hide(run.Result), "")
		}
	}
	s.drawCard(ctx, c, run, more.visits)
	html, err := fragment.Render(c)
	if err != nil {
		return nil, err
	}
	content := members{{"execution_id", run.ExecutionID}, {"html", string(html)}, {"seq", float64(run.Seq)}, {"ended", run.Status.Terminal()}}
	content.Put("questions", questions)
	if origin != "" {
		content.Put("page", origin+fragment.RunPath(run.ExecutionID))
	}
	return content, nil
}

// cardTicket returns the ticket for the answer to a question, "" for a card without answers: the server takes no answers, or a value to choose
// is a secret that is not shown.
func (s *server) cardTicket(ctx context.Context, k *asking, run *view.Run, p *view.Pending) (string, error) {
	if !s.cardTools.has("workflow_card_answer") || isUnbound(p) {
		return "", nil
	}
	if html, err := fragment.Render(fragment.AskOf(p, s.hide, fragment.Post{}, nil)); err != nil || s.opts.Redaction.String(string(html)) != string(html) {
		return "", err
	}
	key, err := s.ticketKey(ctx)
	if err != nil {
		return "", err
	}
	return elicit.Seal(key, elicit.Ticket{
		ExecutionID: run.ExecutionID, InterruptID: p.ID, Session: k.cardSession(), Card: s.shownDigest(p), Expires: time.Now().Add(elicit.Lifetime),
	}), nil
}

// The graph of a card has at most maxCardNodes nodes, and states from at most maxCardRecords records.
const (
	maxCardNodes   = 150
	maxCardRecords = 10_000
	cardRecords    = 500
)

// program returns the program of a run, nil if its definition cannot be read here.
func (s *server) program(ctx context.Context, run *view.Run) *definition.Program {
	if s.opts.Definitions == nil {
		return nil
	}
	stored, err := s.opts.Definitions.Definition(ctx, run.DefinitionHash)
	if err != nil {
		return nil
	}
	document, err := s.ReadDefinition(stored.Text)
	if err != nil {
		return nil
	}
	program, err := s.Program(document)
	if err != nil {
		program, _ = definition.Draft(document, definition.Options{AllowInterruptInBranch: true})
	}
	return program
}

// drawCard adds the graph and, for a card that fills the window, the visits, unless the definition cannot be read here.
func (s *server) drawCard(ctx context.Context, c *fragment.Card, run *view.Run, visits bool) {
	program := s.program(ctx, run)
	if program == nil {
		return
	}
	line := timeline.New(run.ExecutionID, jsonvalue.Plain)
	line.Define(run.ExecutionID, program)
	for from := int64(1); from <= min(run.Seq, maxCardRecords); from += cardRecords {
		records, err := s.History(ctx, graph.HistoryRequest{ExecutionID: run.ExecutionID, FromSeq: from, Limit: cardRecords})
		if err != nil {
			return
		}
		for i := range records {
			line.Record(run.ExecutionID, &records[i])
		}
	}
	seen := map[string]bool{}
	for _, v := range line.Root().Visits {
		seen[v.Node] = true
	}
	c.Progress = fmt.Sprintf("Graph: %d of %d nodes visited", len(seen), len(program.Nodes))
	c.Outline = picture.Text(program, line.Root())
	if visits {
		c.Visits = fragment.VisitsOf(line.Root(), cmp.Or(run.Now, run.UpdatedAt), false)
	}
	if len(program.Nodes) <= maxCardNodes {
		c.SVG = template.HTML(picture.Draw(program, line.Root(), picture.Options{})) //nolint:gosec // made by package picture
	}
}

// textsOf returns the fields of a form as a card sends them: texts, or lists of texts.
func textsOf(fields map[string]any) map[string][]string {
	values := map[string][]string{}
	for name, v := range fields {
		list, isList := v.([]any)
		if !isList {
			list = []any{v}
		}
		for _, one := range list {
			if text, isText := one.(string); isText {
				values[name] = append(values[name], text)
			}
		}
	}
	return values
}
