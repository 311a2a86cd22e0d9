package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

const cardURI = "ui://workflows-engine/run"

// cardHost is a host that shows cards.
type cardHost struct {
	t       *testing.T
	session *mcp.ClientSession
}

// cards connects a host of a revision that shows cards, with a person if there is one.
func (o *office) cards(revision, name string, p *person) *cardHost {
	o.t.Helper()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(context.Background(), mcpserver.New(o.runner, o.options), there) }()
	capabilities := &mcp.ClientCapabilities{}
	capabilities.AddExtension("io.modelcontextprotocol/ui", map[string]any{"mimeTypes": []any{"text/html;profile=mcp-app"}})
	options := &mcp.ClientOptions{Capabilities: capabilities}
	if p != nil {
		options.ElicitationHandler = p.answer
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, options).
		Connect(context.Background(), here, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		session.Close()
		if err := <-served; err != nil {
			o.t.Errorf("Serve: %v", err)
		}
	})
	return &cardHost{o.t, session}
}

// call calls a tool; text is the text part of its result.
func (h *cardHost) call(name string, args object) (content object, text string, failed bool) {
	h.t.Helper()
	res, err := h.session.CallTool(h.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		h.t.Fatalf("%s: %v", name, err)
	}
	content, _ = res.StructuredContent.(object)
	return content, res.Content[0].(*mcp.TextContent).Text, res.IsError
}

func (h *cardHost) ok(name string, args object) object {
	h.t.Helper()
	content, text, failed := h.call(name, args)
	if failed {
		h.t.Fatalf("%s: %s", name, text)
	}
	return content
}

// ticket returns the ticket of the only question of a card.
func (h *cardHost) ticket(card object) string {
	h.t.Helper()
	return at(h.t, card, "questions", 0, "ticket").(string)
}

func (o *office) begin(h *cardHost, id string, nodes ...object) object {
	o.t.Helper()
	return h.ok("workflow_start", object{"execution_id": id, "definition": walk(nodes...), "input": object{}, "wait_ms": 0})
}

// TestClientsWithoutCardsSeeNothing: list, capabilities, resources and calls are those of a server without cards.
func TestClientsWithoutCardsSeeNothing(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		plain, cards := o.host(revision, nil), o.cards(revision, "chat", nil)
		names := func(s *mcp.ClientSession) (list []string, text string) {
			tools, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools.Tools {
				list = append(list, tool.Name)
			}
			raw, _ := json.Marshal(tools.Tools)
			return list, string(raw)
		}
		few, text := names(plain.session)
		many, cardText := names(cards.session)
		if _, after := names(plain.session); after != text {
			t.Errorf("the list of a client with cards has changed that of one without: %s, before %s", after, text)
		}
		if strings.Contains(text, `"ui"`) || strings.Contains(text, "card") || strings.Contains(text, "workflow_show") {
			t.Errorf("the list has %s", text)
		}
		if want := append(slices.Clone(few), "workflow_show", "workflow_card", "workflow_card_answer"); !slices.Equal(many, want) {
			t.Errorf("tools: %q", many)
		}
		if n := strings.Count(cardText, cardURI); n != 4 {
			t.Errorf("%d tools have the card: %s", n, cardText)
		}
		if text, _ := json.Marshal(plain.session.InitializeResult()); strings.Contains(string(text), "io.modelcontextprotocol/ui") {
			t.Errorf("capabilities: %s", text)
		}
		if text, _ := json.Marshal(cards.session.InitializeResult()); !strings.Contains(string(text), "io.modelcontextprotocol/ui") {
			t.Errorf("capabilities: %s", text)
		}
		errorOf := func(name string) string {
			_, err := plain.session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: object{"execution_id": "r"}})
			return fmt.Sprint(err)
		}
		unknown := errorOf("workflow_none")
		for _, name := range []string{"workflow_show", "workflow_card", "workflow_card_answer"} {
			if got := errorOf(name); strings.ReplaceAll(got, name, "workflow_none") != unknown {
				t.Errorf("%s: %s, want %s", name, got, unknown)
			}
		}
		if _, err := plain.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: cardURI}); err == nil {
			t.Error("the card is read")
		}
		for _, s := range []*mcp.ClientSession{plain.session, cards.session} {
			list, err := s.ListResources(t.Context(), nil)
			if err != nil || slices.ContainsFunc(list.Resources, func(r *mcp.Resource) bool { return r.URI == cardURI }) {
				t.Errorf("resources: %v, %v", list, err)
			}
		}
	})
}

// TestTheCardItself: one file of at most 64 kB that loads nothing.
func TestTheCardItself(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		h := newOffice(t, graph.Options{}, mcpserver.Options{}).cards(revision, "chat", nil)
		res, err := h.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: cardURI})
		if err != nil {
			t.Fatal(err)
		}
		c := res.Contents[0]
		meta, _ := json.Marshal(c.Meta)
		if c.MIMEType != "text/html;profile=mcp-app" || string(meta) != `{"ui":{"csp":{},"prefersBorder":true}}` {
			t.Errorf("%s %s", c.MIMEType, meta)
		}
		if len(c.Text) > 64_000 || !strings.HasPrefix(c.Text, "<!doctype html>") || !strings.Contains(c.Text, "ui/initialize") || strings.Contains(c.Text, "ZgotmplZ") {
			t.Errorf("%d bytes: %.200s", len(c.Text), c.Text)
		}
		if out := regexp.MustCompile(`(src|href|action)="?[a-z]|https?://|url\(|@import|fetch\(|XMLHttp|WebSocket|EventSource\(`).FindString(c.Text); out != "" {
			t.Errorf("the card has %q", out)
		}
	})
}

// TestAnswersInCards: the person answers in the card, once; the history says by which way.
func TestAnswersInCards(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		for _, mode := range []elicit.Mode{elicit.Auto, elicit.Never} {
			o := newOffice(t, graph.Options{}, mcpserver.Options{Elicit: mode})
			h := o.cards(revision, "chat", nil)
			begun := o.begin(h, "r", approval, work)
			if tool := at(t, begun, "next", "tool"); tool != "workflow_show" {
				t.Errorf("next is %v", begun["next"])
			}
			shown, text, _ := h.call("workflow_show", object{"execution_id": "r"})
			if at(t, shown, "next", "tool") != "workflow_status" || !strings.Contains(text, "The person sees execution r") {
				t.Errorf("%v %s", shown, text)
			}
			card := h.ok("workflow_card", object{"execution_id": "r"})
			html := card["html"].(string)
			for _, want := range []string{"Refund 10 €?", ">Approve</button>", `id="n-ask" class="node now"`, "Graph: 2 of 4 nodes visited"} {
				if !strings.Contains(html, want) {
					t.Errorf("no %s in %s", want, html)
				}
			}
			ticket := h.ticket(card)
			if strings.Contains(text, ticket) || card["ended"] != false {
				t.Errorf("%s, %v", text, card["ended"])
			}
			same := h.ok("workflow_card", object{"execution_id": "r", "since_seq": card["seq"], "wait_ms": 0})
			if _, again := same["html"]; again {
				t.Error("an unchanged card is sent again")
			}
			if refused := h.ok("workflow_card_answer", object{"ticket": ticket, "fields": object{}}); refused["taken"] != nil || !strings.Contains(refused["said"].(string), "not recorded") {
				t.Errorf("%v", refused)
			}
			done := h.ok("workflow_card_answer", object{"ticket": ticket, "fields": object{"f0": []any{"false"}}})
			if done["taken"] != true || len(done["questions"].([]any)) != 0 || !strings.Contains(done["context"].(string), "workflow_status") {
				t.Errorf("%v", done)
			}
			again := h.ok("workflow_card_answer", object{"ticket": ticket, "fields": object{"f0": []any{"true"}}})
			if again["taken"] != nil || !strings.Contains(again["said"].(string), "Nothing was recorded now") {
				t.Errorf("%v", again)
			}
			by := resumed(t, &host{t: t, store: o.store}, "r")
			if len(by) != 1 || !strings.Contains(by[0], "app") || !strings.Contains(by[0], "chat") {
				t.Errorf("answered by %q", by)
			}
		}
	})
}

// TestTicketsOfCards: a ticket is of this server, this client and this question, for a day.
func TestTicketsOfCards(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		h := o.cards(revision, "chat", nil)
		o.begin(h, "r", approval)
		ticket := h.ticket(h.ok("workflow_card", object{"execution_id": "r"}))
		fields := object{"f0": []any{"true"}}
		other := "A"
		if ticket[:1] == other {
			other = "B"
		}
		for name, forged := range map[string]string{"none": "x", "changed": other + ticket[1:], "host's": "eyJydW4iOiJyIn0.x"} {
			if _, text, failed := h.call("workflow_card_answer", object{"ticket": forged, "fields": fields}); !failed || !strings.Contains(text, "ticket does not belong") {
				t.Errorf("%s: %s", name, text)
			}
		}
		if _, text, failed := o.cards(revision, "other", nil).call("workflow_card_answer", object{"ticket": ticket, "fields": fields}); !failed || !strings.Contains(text, "this client") {
			t.Errorf("another client: %s", text)
		}
		if by := resumed(t, &host{t: t, store: o.store}, "r"); len(by) != 0 {
			t.Errorf("answered by %q", by)
		}
		if done := h.ok("workflow_card_answer", object{"ticket": ticket, "fields": fields}); done["taken"] != true {
			t.Errorf("%v", done)
		}
	})
}

// TestRequiredConfirmsCards: with --elicit required the host asks the person once more, with the card's answer filled in; a host that
// cannot ask takes no answers.
func TestRequiredConfirmsCards(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{Elicit: elicit.Required})
		h := o.cards(revision, "chat", nil)
		o.begin(h, "r", approval)
		ticket := h.ticket(h.ok("workflow_card", object{"execution_id": "r"}))
		if _, text, failed := h.call("workflow_card_answer", object{"ticket": ticket, "fields": object{"f0": []any{"true"}}}); !failed || !strings.Contains(text, "only from a host that asks them") {
			t.Errorf("%s", text)
		}
		p := says(closes, accepts(object{"approve": true}))
		h = o.cards(revision, "desk", p)
		h.ok("workflow_status", object{"execution_id": "r", "wait_ms": 1000}) // the host asks, and the person closes the form
		ticket = h.ticket(h.ok("workflow_card", object{"execution_id": "r"}))
		done := h.ok("workflow_card_answer", object{"ticket": ticket, "fields": object{"f0": []any{"true"}}})
		if done["taken"] != true {
			t.Errorf("%v", done)
		}
		asked, _ := json.Marshal(p.asked[len(p.asked)-1].RequestedSchema)
		if len(p.asked) != 2 || !strings.Contains(string(asked), `"default":true`) {
			t.Errorf("asked %d times, %s", len(p.asked), asked)
		}
		if by := resumed(t, &host{t: t, store: o.store}, "r"); len(by) != 1 || !strings.Contains(by[0], "elicitation") {
			t.Errorf("answered by %q", by)
		}
	})
}

// TestHostileCards: texts of a definition stay texts in the card.
func TestHostileCards(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		h := o.cards(revision, "chat", nil)
		evil := `"><img src=x onerror=alert(1)></script><a href="javascript:x">`
		o.begin(h, "r", formNode(evil, evil, object{evil: object{"type": "string", "title": evil, "enum": []any{evil, "b"}}}, evil))
		html := h.ok("workflow_card", object{"execution_id": "r"})["html"].(string)
		if strings.Contains(html, "<img") || strings.Contains(html, "</script") || strings.Contains(html, "<a ") {
			t.Errorf("%s", html)
		}
	})
}

// TestCardsByRequest: in revision 2026-07-28 each request declares what its client shows, so that one connection has both kinds.
func TestCardsByRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		ask := func(method, more, capabilities string) string {
			answer := w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
				`"io.modelcontextprotocol/clientCapabilities":%s,"io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"}}}}`, method, more, askingTicket, capabilities))
			if len(answer) != 1 {
				t.Fatalf("answers: %q", answer)
			}
			return answer[0]
		}
		const shows = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`
		plain := ask("tools/list", "", `{}`)
		call, read := `"name":"workflow_card","arguments":{"execution_id":"r"},`, `"uri":"`+cardURI+`",`
		for range 2 {
			if got := ask("tools/list", "", shows); !strings.Contains(got, "workflow_card_answer") {
				t.Errorf("the list has no cards: %s", got)
			}
			if got := ask("tools/call", call, shows); !strings.Contains(got, "EXECUTION_NOT_FOUND") {
				t.Errorf("%s", got)
			}
			if got := ask("resources/read", read, shows); !strings.Contains(got, "ui/initialize") {
				t.Errorf("%.300s", got)
			}
			for _, other := range []string{
				`{}`, `{"extensions":{}}`, `{"extensions":{"io.modelcontextprotocol/ui":{}}}`, `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`,
				`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":"text/html;profile=mcp-app"}}}`, `{"experimental":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`,
			} {
				if got := ask("tools/list", "", other); got != plain {
					t.Errorf("%s: the list is %s, want %s", other, got, plain)
				}
				if got := ask("tools/call", call, other); !strings.Contains(got, `unknown tool`) {
					t.Errorf("%s: %s", other, got)
				}
				if got := ask("resources/read", read, other); strings.Contains(got, "ui/initialize") {
					t.Errorf("%s: the card is read", other)
				}
			}
		}
	})
}

// TestCardTicketsAreBound: a ticket in another spelling, one of another server or purpose, one of an earlier visit and one that has ended are not taken.
func TestCardTicketsAreBound(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		h := o.cards(revision, "chat", nil)
		again := formNode("again", "Refund 10 €?", object{"approve": object{"type": "boolean"}}, "approve")
		o.begin(h, "r", approval, again)
		o.begin(h, "s", approval)
		ticket, fields := h.ticket(h.ok("workflow_card", object{"execution_id": "r"})), object{"f0": []any{"true"}}
		other := h.ticket(h.ok("workflow_card", object{"execution_id": "s"}))
		body, signature, _ := strings.Cut(ticket, ".")
		otherBody, _, _ := strings.Cut(other, ".")
		refused := func(name, forged string) {
			t.Helper()
			if _, text, failed := h.call("workflow_card_answer", object{"ticket": forged, "fields": fields}); !failed || !strings.Contains(text, "ticket does not belong") {
				t.Errorf("%s: %s", name, text)
			}
		}
		last := "A"
		if strings.HasSuffix(signature, last) {
			last = "B"
		}
		for name, forged := range map[string]string{
			"without signature": body, "with an empty signature": body + ".", "with padding": body + "=." + signature, "with a padded signature": ticket + "=",
			"with a line break": ticket + "\n", "with a break within": body[:10] + "\n" + body[10:] + "." + signature, "with a space": " " + ticket, "in lower case": strings.ToLower(ticket),
			"with the body of another": otherBody + "." + signature, "with a part more": ticket + ".x", "with the last bits changed": ticket[:len(ticket)-1] + last, "twice": ticket + ticket,
			"very long": strings.Repeat("A", 1<<20) + "." + signature,
		} {
			refused(name, forged)
		}
		key, err := o.store.Key(t.Context(), "elicit")
		if err != nil {
			t.Fatal(err)
		}
		made, err := elicit.Open(key, ticket, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*elicit.Ticket){
			"of the host's form": func(m *elicit.Ticket) { m.Card = "" }, "of no client": func(m *elicit.Ticket) { m.Session = "" },
		} {
			changed := made
			change(&changed)
			refused(name, elicit.Seal(key, changed))
		}
		refused("of another server", elicit.Seal([]byte("another key"), made))
		other2 := made
		other2.ExecutionID = "s" // signed, but not by a card of this run
		if got, text, failed := h.call("workflow_card_answer", object{"ticket": elicit.Seal(key, other2), "fields": fields}); failed || got["taken"] != nil {
			t.Errorf("of another run: %v %s", got, text)
		}
		if by := resumed(t, &host{t: t, store: o.store}, "r"); len(by) != 0 {
			t.Fatalf("answered by %q", by)
		}
		h.ok("workflow_card_answer", object{"ticket": ticket, "fields": fields})
		if got := h.ok("workflow_card_answer", object{"ticket": ticket, "fields": fields}); got["taken"] != nil || len(got["questions"].([]any)) != 1 {
			t.Errorf("the next question took the ticket of the first: %v", got)
		}
		ticket = h.ticket(h.ok("workflow_card", object{"execution_id": "r"}))
		time.Sleep(elicit.Lifetime)
		if _, text, failed := h.call("workflow_card_answer", object{"ticket": ticket, "fields": fields}); !failed || !strings.Contains(text, "expired") {
			t.Errorf("after a day: %s", text)
		}
		if by := resumed(t, &host{t: t, store: o.store}, "r"); len(by) != 1 {
			t.Errorf("answered by %q", by)
		}
	})
}

// TestCardsShowMistakes: what breaks the schema is said beside the field, and what was filled in stays.
func TestCardsShowMistakes(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		h := newOffice(t, graph.Options{}, mcpserver.Options{}).cards(revision, "chat", nil)
		o := object{"code": object{"type": "string", "pattern": "^[A-Z]{3}$"}}
		(&office{t: t}).begin(h, "r", formNode("ask", "Which?", o, "code"))
		ticket := h.ticket(h.ok("workflow_card", object{"execution_id": "r"}))
		html := h.ok("workflow_card_answer", object{"ticket": ticket, "fields": object{"f0": []any{"abc"}}})["html"].(string)
		for _, want := range []string{`aria-invalid="true"`, `value="abc"`, `id="f0-e"`} {
			if !strings.Contains(html, want) {
				t.Errorf("no %s in %s", want, html)
			}
		}
	})
}

// TestCardsTellWhoWasFirst: the same answer again is told as recorded, another one as too late, both with the person and the time.
func TestCardsTellWhoWasFirst(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		h := o.cards(revision, "chat", nil)
		o.begin(h, "r", approval)
		ticket := h.ticket(h.ok("workflow_card", object{"execution_id": "r"}))
		before := len(resumed(t, &host{t: t, store: o.store}, "r"))
		answer := func(value string) string {
			return h.ok("workflow_card_answer", object{"ticket": ticket, "fields": object{"f0": []any{value}}})["said"].(string)
		}
		for i, c := range []struct{ value, want string }{
			{"true", `^The answer is recorded\.$`},
			{"true", `^This answer is recorded by chat .*\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\.$`},
			{"false", `^Another answer came first by chat .*\dZ\. Nothing was recorded now\.$`},
		} {
			if said := answer(c.value); !regexp.MustCompile(c.want).MatchString(said) {
				t.Errorf("answer %d: %s", i, said)
			}
		}
		if n := len(resumed(t, &host{t: t, store: o.store}, "r")) - before; n != 1 {
			t.Errorf("%d answers", n)
		}
	})
}

// TestCardsLinkToThePage: a card has the addresses of the run and of its questions while a page runs, also if the run has not changed.
func TestCardsLinkToThePage(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		origin := ""
		o := newOffice(t, graph.Options{}, mcpserver.Options{Page: func(context.Context) string { return origin }})
		h := o.cards(revision, "chat", nil)
		o.begin(h, "r/1", approval)
		card := h.ok("workflow_card", object{"execution_id": "r/1"})
		if _, has := card["page"]; has {
			t.Errorf("a link without a page: %v", card["page"])
		}
		origin = "http://w1.localhost:7"
		same := h.ok("workflow_card", object{"execution_id": "r/1", "since_seq": card["seq"], "wait_ms": 0})
		if same["page"] != origin+"/runs/r%2F1" {
			t.Errorf("%v", same)
		}
		card = h.ok("workflow_card", object{"execution_id": "r/1"})
		if card["page"] != origin+"/runs/r%2F1" || at(t, card, "questions", 0, "page") != origin+"/runs/r%2F1/questions/ask%231" {
			t.Errorf("%v %v", card["page"], card["questions"])
		}
	})
}

// TestCardsFollowRuns: a card that waits is answered when the run changes; one of an ended run at once. The visits come if they are asked for.
func TestCardsFollowRuns(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		h := o.cards(revision, "chat", nil)
		o.begin(h, "r", approval)
		card := h.ok("workflow_card", object{"execution_id": "r"})
		if strings.Contains(card["html"].(string), "Visits") {
			t.Errorf("visits: %s", card["html"])
		}
		if html := h.ok("workflow_card", object{"execution_id": "r", "visits": true})["html"].(string); !strings.Contains(html, `data-part="visits"`) || strings.Contains(html, "<a ") {
			t.Errorf("%s", html)
		}
		if _, text, failed := h.call("workflow_card", object{"execution_id": "r", "visits": "yes"}); !failed || !strings.Contains(text, "boolean") {
			t.Errorf("%s", text)
		}
		began := time.Now()
		time.AfterFunc(3*time.Second, func() {
			_, _ = o.runner.Resume(context.Background(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"approve": true}})
		})
		after := h.ok("workflow_card", object{"execution_id": "r", "since_seq": card["seq"], "wait_ms": 25000})
		if after["html"] == nil || time.Since(began) > 4*time.Second {
			t.Errorf("after %v: %v", time.Since(began), after)
		}
		if after["ended"] != true {
			after = h.ok("workflow_card", object{"execution_id": "r", "since_seq": after["seq"], "wait_ms": 25000})
		}
		began = time.Now()
		if end := h.ok("workflow_card", object{"execution_id": "r", "since_seq": after["seq"], "wait_ms": 25000}); end["ended"] != true || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), end)
		}
	})
}

// TestCardTicketsEndWithTheirRun: a ticket is not taken for another run that has got the id of a deleted one, though it asks the same.
func TestCardTicketsEndWithTheirRun(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		h := o.cards(revision, "chat", nil)
		o.begin(h, "r", approval)
		ticket := h.ticket(h.ok("workflow_card", object{"execution_id": "r"}))
		if _, err := o.runner.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if page, err := o.runner.Prune(t.Context(), history.PruneQuery{Before: time.Now()}); err != nil {
			t.Fatalf("%+v, %v", page, err)
		}
		o.begin(h, "r", approval)
		got := h.ok("workflow_card_answer", object{"ticket": ticket, "fields": object{"f0": []any{"true"}}})
		if got["taken"] != nil || !strings.Contains(got["said"].(string), "has changed") {
			t.Errorf("%v", got)
		}
		if by := resumed(t, &host{t: t, store: o.store}, "r"); len(by) != 0 {
			t.Errorf("answered by %q", by)
		}
	})
}
