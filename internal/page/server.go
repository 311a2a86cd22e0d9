package page

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// Options configures the page.
type Options struct {
	// Engine is shown, and performs the requests. Required.
	Engine graph.Engine
	// Catalog has the workflows of a directory; nil without one.
	Catalog Workflows
	// ReadOnly leaves out the routes that change anything.
	ReadOnly bool
	// Actor is recorded with each change. An empty Via means "page".
	Actor history.Actor
	// Redaction hides secrets in shown values. It is the engine's.
	Redaction history.Redaction
	// Glossary translates the names of the Go library in hints and warnings.
	Glossary problem.Glossary
	// Log receives refused requests (info) and panics (error); nil discards them.
	Log *slog.Logger
	// Origin is the address of the page: scheme, host and port, as in http://k7f3.localhost:8123. Requests for another host are refused.
	// Required without Access.
	Origin string
	// Access replaces Origin in a server with other handlers: the page answers to the host names that it admits, and its tokens let browsers
	// in. The name of a token is then the actor of changes. Without tokens, links let browsers in.
	Access *httpguard.Access
	// Key authenticates the links that let a browser in; see Link. The zero value is replaced by a random key.
	Key Key
	// Version is shown on the system page, and in footers up to its first space.
	Version string
	// Settings are shown on the system page.
	Settings []Setting
	// Located returns the name of a setting with the file that it was read from; nil returns the name alone.
	Located func(setting string) string
}

// Setting is a setting of the process with its shown value, which is never a secret.
type Setting struct{ Name, Value string }

// SettingsOf returns the settings of every process: its store, its workflow folder ("" without one), what performs its activities, its agents and
// its limits of attempts.
func SettingsOf(store, folder string, routes []slog.Attr, agents []string, limits []graph.Limit) []Setting {
	list := []Setting{{Name: "Store", Value: store}}
	add := func(name, value string) {
		if value != "" {
			list = append(list, Setting{Name: name, Value: value})
		}
	}
	add("Workflow folder", folder)
	for _, route := range routes {
		switch {
		case route.Value.Kind() == slog.KindGroup:
		case slices.Contains([]string{"a2a", "mcp", "sdk"}, route.Key):
			add("Delegates of protocol "+route.Key, route.Value.String())
		default:
			add("Nodes of type "+route.Key, route.Value.String())
		}
	}
	add("Agents", strings.Join(agents, ", "))
	for _, l := range limits {
		var of []string
		if l.Concurrent > 0 {
			of = append(of, fmt.Sprintf("%d at once", l.Concurrent))
		}
		if l.PerSecond > 0 {
			of = append(of, fmt.Sprintf("%g starts a second", l.PerSecond))
		}
		add("Limit of "+l.Class, strings.Join(of, ", "))
	}
	return list
}

// Workflows is a catalog of workflow definitions; see catalog.Catalog.
type Workflows interface {
	Look() *catalog.Snapshot
}

// Server is the page of an engine.
type Server struct {
	o Options
	// views renders the pages, acts answers the forms.
	views, acts *http.ServeMux
	sessions    sessions
	feed        feed
	folds       folds
	ended       context.Context
	end         context.CancelFunc
}

// New returns the page of an engine.
func New(o Options) (*Server, error) {
	if o.Engine == nil {
		return nil, problem.New(problem.UsageError, "the page has no engine").WithHint("Set Engine.")
	}
	if origin, err := url.Parse(o.Origin); o.Access == nil && (err != nil || origin.Scheme == "" || origin.Host == "" || origin.Scheme+"://"+origin.Host != o.Origin) {
		return nil, problem.New(problem.UsageError, "invalid origin %q", o.Origin).WithHint("Write scheme, host and port, as in http://127.0.0.1:8123.")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Actor.Via = cmp.Or(o.Actor.Via, "page")
	o.Glossary = maps.Clone(o.Glossary)
	if o.Glossary == nil {
		o.Glossary = problem.Glossary{}
	}
	for name, option := range map[string]string{
		"ForkRequest.Anew": optionAnew, "ForkRequest.RepeatEffects": optionRepeat, "ForkRequest.CurrentAgentConfig": optionCurrent, "ForkRequest.Again": optionAgain,
	} {
		o.Glossary[name] = fmt.Sprintf("the option %q", option)
	}
	if o.Key == (Key{}) {
		o.Key = NewKey()
	}
	s := &Server{o: o, views: http.NewServeMux(), acts: http.NewServeMux()}
	s.sessions.key, s.feed.engine = o.Key, o.Engine
	s.ended, s.end = context.WithCancel(context.Background())
	for _, row := range routes {
		s.views.HandleFunc(row.pattern, func(w http.ResponseWriter, r *http.Request) {
			out := w.(*rendering)
			out.view, out.err = row.view(s, r)
		})
	}
	if !o.ReadOnly {
		for _, row := range acts {
			s.acts.HandleFunc(row.pattern, func(w http.ResponseWriter, r *http.Request) {
				row.act(s, w, r.WithContext(graph.WithActor(r.Context(), s.actor(r))))
			})
		}
	}
	s.acts.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, http.StatusNotFound, "nothing can be changed at this address")
	})
	return s, nil
}

// Beside returns the handler of a server that has the page and another handler: requests for paths, and for paths below them, go to the
// other one.
func (s *Server) Beside(other http.Handler, paths ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range paths {
			if rest, below := strings.CutPrefix(r.URL.Path, path); below && (rest == "" || rest[0] == '/') {
				other.ServeHTTP(w, r)
				return
			}
		}
		s.ServeHTTP(w, r)
	})
}

// Entrance returns the address at which a person gets into a page with Access that listens: without tokens it is a link, which lets one browser
// in, once, until ten minutes after now.
func Entrance(listens net.Addr, tokens bool, k Key, now time.Time) string {
	origin := "http://" + listens.String()
	if tokens {
		return origin + "/"
	}
	return Link(origin, k, now, "/")
}

// Close ends the event streams. The pages stay.
func (s *Server) Close() { s.end() }

// view is a rendered page.
type view struct {
	// Title is the title of the document, without the name of the program.
	Title string
	// Body is the content of <main>, made by internal/fragment.
	Body template.HTML
	// Status is the HTTP status; 0 means 200. Failure is the error of a page that has only that.
	Status  int
	Failure string
	// Follow has the ids of the runs shown; nil means every run. Changes of these runs render the view again.
	Follow []string
	// Raw, unless nil, is the answer in place of a page: a picture, or a large value as text.
	Raw *raw
}

// raw is an answer that is not a page.
type raw struct {
	// Type is the media type.
	Type string
	// Name is that of the file when the browser saves the answer; "" shows the answer.
	Name string
	Body []byte
}

// route is one row of the table of pages. The events of a page render the same row again.
type route struct {
	// pattern is that of http.ServeMux.
	pattern string
	view    func(*Server, *http.Request) (view, error)
}

// routes are the pages. {id} is a run; see runID.
var routes = []route{
	{"GET /{$}", (*Server).homeView},
	{"GET /runs", (*Server).runsView},
	{"GET /runs/{id}", (*Server).runView},
	{"GET /runs/{id}/questions/{key}", (*Server).questionView},
	{"GET /runs/{id}/visits/{node}/{n}", (*Server).visitView},
	{"GET /runs/{id}/history", (*Server).historyView},
	{"GET /runs/{id}/graph.svg", (*Server).graphView},
	{"GET /runs/{id}/value", (*Server).valueView},
	{"GET /run", (*Server).runByQueryView},
	{"GET /workflows", (*Server).workflowsView},
	{"GET /workflows/{name}", (*Server).workflowView},
	{"GET /workflow", (*Server).workflowView},
	{"GET /system", (*Server).systemView},
}

// runID returns the id of the run that a request names: the {id} of its path, or ?id= of /run, since no path can hold the ids ".", ".."
// and "".
func runID(r *http.Request) string {
	if r.URL.Path == "/run" {
		return r.URL.Query().Get("id")
	}
	return r.PathValue("id")
}

// runByQueryView shows /run?id=ID&view=VIEW.
func (s *Server) runByQueryView(r *http.Request) (view, error) {
	q := r.URL.Query()
	switch q.Get("view") {
	case "history":
		return s.historyView(r)
	case "graph.svg":
		return s.graphView(r)
	case "value":
		return s.valueView(r)
	case "questions":
		r.SetPathValue("key", q.Get("key"))
		return s.questionView(r)
	case "visits":
		r.SetPathValue("node", q.Get("key"))
		r.SetPathValue("n", q.Get("n"))
		return s.visitView(r)
	}
	return s.runView(r)
}

// submitted is a rejected form. Its page is shown again, with the typed text and the reasons.
type submitted struct {
	// Action is the path that the form was sent to.
	Action string
	// Values has the typed text, by the names of the form's fields.
	Values map[string][]string
	// Mistakes has the reasons by the names of the fields.
	Mistakes map[string]string
	// Err is the refusal as a whole; it may be nil. Run is the run that it is about, "" for that of the page.
	Err error
	Run string
}

// filled returns the form as fragments show it again; nil for nil.
func (f *submitted) filled() *fragment.Filled {
	if f == nil {
		return nil
	}
	return &fragment.Filled{Values: f.Values, Mistakes: f.Mistakes}
}

type submittedKey struct{}

// submittedOf returns the refused form that the request's page shows again, or nil.
func submittedOf(r *http.Request) *submitted {
	form, _ := r.Context().Value(submittedKey{}).(*submitted)
	return form
}
