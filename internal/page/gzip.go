package page

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// minZipped is the size of the smallest answer that is compressed, in bytes: one packet holds a smaller one as it is.
const minZipped = 1400

// zipWriters are kept, because each has large tables.
var zipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a valid level
	return w
}}

// zip returns a writer that compresses texts for clients that accept it. Its end must be called. Event streams are not compressed, since
// each event has to arrive at once.
func zip(w http.ResponseWriter, r *http.Request) *zipping {
	z := &zipping{ResponseWriter: w}
	for name := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if coding, quality, _ := strings.Cut(strings.TrimSpace(name), ";"); strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			z.accepted = strings.Trim(strings.TrimPrefix(strings.TrimSpace(quality), "q="), "0.") != "" || quality == ""
		}
	}
	return z
}

// zipping compresses an answer whose first part is large enough.
type zipping struct {
	http.ResponseWriter
	accepted bool
	// status is that of the answer until its head is sent, 0 before and after.
	status int
	sent   bool
	zip    *gzip.Writer
}

// Unwrap is for http.ResponseController.
func (z *zipping) Unwrap() http.ResponseWriter { return z.ResponseWriter }

func (z *zipping) WriteHeader(status int) {
	if !z.sent && z.status == 0 {
		z.status = status
	}
}

// head sends the head of an answer that begins with a number of bytes.
func (z *zipping) head(size int) {
	if z.sent {
		return
	}
	z.sent = true
	h := z.Header()
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if strings.HasPrefix(kind, "text/") && kind != "text/event-stream" || kind == "image/svg+xml" {
		h.Add("Vary", "Accept-Encoding")
		if z.accepted && size >= minZipped {
			h.Set("Content-Encoding", "gzip")
			h.Del("Content-Length")
			z.zip = zipWriters.Get().(*gzip.Writer)
			z.zip.Reset(z.ResponseWriter)
		}
	}
	if z.status != 0 {
		z.ResponseWriter.WriteHeader(z.status)
	}
}

func (z *zipping) Write(text []byte) (int, error) {
	z.head(len(text))
	if z.zip != nil {
		return z.zip.Write(text)
	}
	return z.ResponseWriter.Write(text)
}

// Flush sends what was written; an event stream uses it.
func (z *zipping) Flush() {
	z.head(0)
	_ = http.NewResponseController(z.ResponseWriter).Flush() // not every writer has it
}

// end sends the rest of the answer.
func (z *zipping) end() {
	z.head(0)
	if z.zip != nil {
		_ = z.zip.Close() // a client that is gone needs no answer
		z.zip.Reset(nil)
		zipWriters.Put(z.zip)
		z.zip = nil
	}
}
