package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

//go:embed static
var static embed.FS

const staticPrefix = "/static/"

// staticPath begins the addresses of the static files. It has the hash of all of them, so that browsers may keep them.
var staticPath = staticPrefix + staticHash()

func staticHash() string {
	sum := sha256.New()
	_ = fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error { // embedded files are always read
		if err == nil && !d.IsDir() {
			text, _ := static.ReadFile(name)
			sum.Write([]byte(name))
			sum.Write(text)
		}
		return nil
	})
	sum.Write([]byte(fragment.Style + fragment.GraphScript))
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// mediaTypes holds the media types of the static files. The system may have others.
var mediaTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".LICENSE": "text/plain; charset=utf-8",
}

func serveStatic(w http.ResponseWriter, r *http.Request) {
	name, ours := strings.CutPrefix(r.URL.Path, staticPath+"/")
	text, err := static.ReadFile("static/" + name)
	switch name {
	case "style.css":
		text, err = []byte(fragment.Style), nil
	case "graph.js":
		text, err = []byte(fragment.GraphScript), nil
	}
	kind := mediaTypes[path.Ext(name)]
	if !ours || err != nil || kind == "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(text)
}

const head = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
`

// reloading shows nothing: it only comes again, as a request of this site.
var reloading = template.Must(template.New("reloading").Parse(head + `<meta http-equiv="refresh" content="0">
<title>workflows-engine</title>
</head>
<body><p>One moment …</p></body>
</html>
`))

var entrance = template.Must(template.New("entrance").Parse(head + `<title>Open the page · workflows-engine</title>
<link rel="stylesheet" href="{{.Static}}/style.css">
<script defer src="{{.Static}}/in.js"></script>
</head>
<body>
<main id="main">
<h1>workflows-engine</h1>
{{with .Refusal}}<p role="alert">{{.}}</p>
{{end}}<p>{{.WayIn}}</p>
<form id="in" method="post" action="/in">
<p><label for="t">{{.Field}}</label>
<input id="t" name="t" type="password" autocomplete="off" required></p>
<input type="hidden" name="to" value="{{.To}}">
{{with .At}}<input type="hidden" name="at" value="{{.}}"><input type="hidden" name="kept" value="{{$.Kept}}">
{{end}}<p><button>Open</button></p>
</form>
</main>
</body>
</html>
`))

// writePage writes a template as a page.
func writePage(w http.ResponseWriter, status int, t *template.Template, data any) {
	var text bytes.Buffer
	if err := t.Execute(&text, data); err != nil {
		panic(err) // a fault of the template
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
}

// render renders the view of a GET request, without its layout. location is where the address is to be found instead, if not "".
func (s *Server) render(r *http.Request) (v view, location string) {
	out := &rendering{header: http.Header{}}
	s.views.ServeHTTP(out, r)
	switch {
	case out.err != nil:
		return s.errorView(out.err), ""
	case out.status >= 300 && out.status < 400:
		return view{}, out.header.Get("Location")
	case out.status != 0:
		return s.errorView(errNoPage), ""
	}
	return out.view, ""
}

var errNoPage = problem.New(problem.UsageError, "page not found").WithHint("Go to the start page.")

// show answers a GET request with its page.
func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	v, location := s.render(r)
	if location != "" {
		http.Redirect(w, r, localPath(location), http.StatusFound)
		return
	}
	if v.Raw != nil {
		h := w.Header()
		h.Set("Content-Type", v.Raw.Type)
		if v.Raw.Type == "image/svg+xml" {
			h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'") // a picture has its own style
		}
		if v.Raw.Name != "" {
			h.Set("Content-Disposition", `attachment; filename="`+fileName(v.Raw.Name)+`"`)
		}
		w.WriteHeader(cmp.Or(v.Status, http.StatusOK))
		_, _ = w.Write(v.Raw.Body)
		return
	}
	s.writeView(w, r, v, r.URL.RequestURI())
}

// writeView writes a view in the layout. live is the address whose events update it; "" for a page that stays as it is.
func (s *Server) writeView(w http.ResponseWriter, r *http.Request, v view, live string) {
	version, _, _ := strings.Cut(s.o.Version, " ")
	body, err := fragment.Render(&fragment.Layout{
		Title: v.Title, Body: v.Body, Path: live, Style: staticPath + "/style.css",
		Scripts: []string{staticPath + "/idiomorph.min.js", staticPath + "/graph.js", staticPath + "/page.js"},
		WayIn:   s.wayIn(), Version: version, Actor: s.actor(r).Name, ByToken: s.o.hasTokens(), ReadOnly: s.readOnly(r),
		Out: fragment.Post{Action: outPath, Token: s.formToken(r, outPath)},
	})
	if err != nil {
		panic(err) // a fault of the template
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(cmp.Or(v.Status, http.StatusOK))
	_, _ = io.WriteString(w, string(body))
}

// fileName returns a name that a header can hold.
func fileName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c) {
			return c
		}
		return '_'
	}, name)
}

// rendering takes the view of a request in place of an answer.
type rendering struct {
	view   view
	err    error
	header http.Header
	status int
}

func (out *rendering) Header() http.Header { return out.header }

// Write drops the text of an answer of the mux itself: a redirect, or an unknown address.
func (out *rendering) Write(text []byte) (int, error) { return len(text), nil }

func (out *rendering) WriteHeader(status int) { out.status = status }

// errorView shows an error: message, hint and code.
func (s *Server) errorView(err error) view {
	shown := s.failure(err)
	status := http.StatusInternalServerError
	if e, ok := problem.As(err); ok {
		status = statusOf(e)
	}
	if u, ok := errors.AsType[unknownRun](err); ok {
		for _, id := range u.near {
			shown.Links = append(shown.Links, fragment.Link{Text: id, Path: fragment.RunPath(id)})
		}
	}
	if errors.Is(err, errNoPage) {
		shown.Code, shown.Finest, status = "", "", http.StatusNotFound
	}
	body, err := fragment.Render(shown)
	if err != nil {
		panic(err) // a fault of the template
	}
	return view{Title: "Error", Body: body, Status: status, Failure: shown.Message}
}

// statusOf returns the HTTP status of an error.
func statusOf(e *problem.Error) int {
	switch e.Code {
	case problem.ExecutionNotFound, problem.WorkflowNotFound, problem.DefinitionNotFound:
		return http.StatusNotFound
	case problem.StoreLocked, problem.StoreFull, problem.StoreReadOnly, problem.StoreUnavailable, problem.StoreOutcomeUnknown, problem.StoreReplaced:
		return http.StatusServiceUnavailable
	case problem.CancelNotAllowed, problem.SignalNotAwaiting, problem.DuplicateExecutionID, problem.AlreadyRetried, problem.LeaseHeld, problem.HistoryConflict:
		return http.StatusConflict
	case problem.Internal, problem.EngineFailure, problem.HistoryCorrupt:
		return http.StatusInternalServerError
	}
	return http.StatusUnprocessableEntity
}
