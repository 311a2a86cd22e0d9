package historypg

import (
	"strconv"
	"strings"
	"sync"
)

// Statements are constants beside the code that runs them. In them
//
//	@runs    is the table runs in the schema of the store
//	{clock}  is the table expression clock, whose column at is the store's time; its parameter is $1, NULL for the server's clock
//	{now}    is the store's time, where {clock} is defined
//	{live}   tells whether the lease with the end expires counts, where {clock} is defined
//	{ended}  lists the phases of runs that no process can own
type texts struct {
	schema string // quoted
	ready  sync.Map
}

// The store's time is the server's plus meta.ahead, and never before meta.seen, the newest time that was stored, unless that lies more than a
// day ahead: then it came from a wrong clock. See setLease.
const (
	day       = "86400000"
	tolerance = "1000"

	clock = `clock AS MATERIALIZED (SELECT greatest(raw + ahead, CASE WHEN seen <= raw + ahead + ` + day + ` THEN seen END) AS at
FROM @meta, (SELECT ` + serverTime + ` AS raw) AS server)`
	serverTime = `coalesce($1::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)`
	now        = `(SELECT at FROM clock)`
	live       = `(expires > ` + now + ` AND expires <= ` + now + ` + ` + day + `)`
	ended      = `('completed', 'failed', 'cancelled', 'deleted')`
)

var markers = strings.NewReplacer("{clock}", clock, "{now}", now, "{live}", live, "{ended}", ended)

// of returns a statement as the server gets it.
func (t *texts) of(text string) string {
	if v, ok := t.ready.Load(text); ok {
		return v.(string)
	}
	out := t.qualify(markers.Replace(text))
	t.ready.Store(text, out)
	return out
}

// qualify puts the schema before the names after @.
func (t *texts) qualify(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '@' && i+1 < len(text) && text[i+1] >= 'a' && text[i+1] <= 'z' {
			b.WriteString(t.schema)
			b.WriteByte('.')
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// quoted returns a name as an identifier.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// statement is a statement that is composed of parts, with its arguments. Every parameter has a cast: the server then deduces no types, so that
// the text is the same with and without prepared statements.
type statement struct {
	text strings.Builder
	args []any
}

func (s *statement) add(parts ...string) {
	for _, p := range parts {
		s.text.WriteString(p)
	}
}

// arg adds an argument and returns its parameter.
func (s *statement) arg(v any, kind string) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args)) + "::" + kind
}
