// Package fragment makes the HTML that the web page and the card of a run in MCP hosts share: view models, templates and one style sheet.
// It is pure: data in, HTML out. It knows no HTTP and no engine.
//
// All text is escaped by html/template, and characters that would change the direction of text or act as controls are shown as escapes, as
// on a terminal. A URL in a text of a run is text, never a link.
package fragment

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/picture"
)

//go:embed templates/*.html
var files embed.FS

// Style is the style sheet of the page and the card. Its colours are variables, which the card sets from its host's theme.
var Style = sheet + picture.Style

//go:embed style.css
var sheet string

// templates are parsed when they are first used: most processes show no page.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(funcs).ParseFS(files, "templates/*.html"))
})

// GraphScript defines showNow, which scrolls the pictures below an element to where their runs are.
//
//go:embed graph.js
var GraphScript string

// View is a view model of this package.
type View interface {
	// template returns the name of the template.
	template() string
}

// Render returns the HTML of a view.
func Render(v View) (template.HTML, error) {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, v.template(), v); err != nil {
		return "", fmt.Errorf("render %s: %w", v.template(), err)
	}
	return template.HTML(jsonvalue.Plain(b.String())), nil //nolint:gosec // made by html/template
}

// FormToken is the hidden field "form" of a form, which binds it to a session.
type FormToken string

// Layout is the page around a view.
type Layout struct {
	Title string
	// Body is the content of <main>, made by Render.
	Body template.HTML
	// Path is the path of the page with its query. The script asks /events for changes of it; "" for a page that does not change.
	Path string
	// Style and Script are the URLs of the static files. Scripts are loaded in order.
	Style   string
	Scripts []string
	// WayIn describes how a person gets in, after the end of the session.
	WayIn string
	// Version is that of the program. Actor is who this page acts for, unauthenticated unless ByToken is set.
	Version, Actor string
	ByToken        bool
	ReadOnly       bool
	// Out is the form that signs the person out.
	Out Post
}

func (*Layout) template() string { return "layout" }

// Section returns the first segment of the path, which names the current entry of the navigation.
func (l *Layout) Section() string {
	if l.Path == "" {
		return "none"
	}
	path, _, _ := strings.Cut(l.Path, "?")
	section, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return section
}

// Failure is a rejected call: message, next step and code.
type Failure struct {
	Message, Hint, Code string
	// Finest is the finest code of the error, if it is not Code.
	Finest string
	// Links are places to go instead, such as runs with similar ids. Lead describes them; "" means that a similar one may have been meant.
	Lead  string
	Links []Link
}

func (*Failure) template() string { return "failure" }

// Link is a link within the page.
type Link struct{ Text, Path string }
