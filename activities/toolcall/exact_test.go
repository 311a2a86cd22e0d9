package toolcall

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A result whose integers or texts would change is refused with its place, however the server sends it; everything else passes
// as it came.
func TestResultsThatWouldChangeAreRefused(t *testing.T) {
	t.Parallel()
	const structured, text = `{"jsonrpc":"2.0","id":7,"result":{"structuredContent":%s}}`, `{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"%s"}]}}`
	for message, want := range map[string]string{
		fmt.Sprintf(structured, `{"id":1234567890123456789}`):                          `{"jsonrpc":"2.0","id":7,"error":{"code":-32000001,"message":"invalid value at \"/structuredContent/id\": the integer 1234567890123456789 cannot be kept exactly; send it as a text"}}`,
		fmt.Sprintf(text, "\xff"):                                                      `{"jsonrpc":"2.0","id":"a","error":{"code":-32000001,"message":"invalid value at \"/content/0/text\": the string is not valid UTF-8"}}`,
		fmt.Sprintf(structured, `{"id":9007199254740992,"n":0.1}`):                     "",
		`{"jsonrpc":"2.0","id":1,"result":{"_meta":{"at":1234567890123456789}}}`:       "",
		`{"jsonrpc":"2.0","method":"x","params":{"progressToken":123456789012345678}}`: "",
	} {
		if want == "" {
			want = message
		}
		if got := string(exact([]byte(message))); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(w, message+"\n"); _ = w.Close() }()
		if got, _ := io.ReadAll(newMessages(r, 1<<20, nil, nil)); string(got) != want+"\n" {
			t.Errorf("standard output: %s", got)
		}
		for kind, form := range map[string]string{"application/json; charset=utf-8": "%s", "text/event-stream": "event: message\ndata:%s\n\n", "text/plain": "%s"} {
			site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", kind)
				fmt.Fprintf(rw, form, message)
			}))
			res, err := (&http.Client{Transport: newHTTPLink(nil, 1<<20, nil)}).Get(site.URL)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			site.Close()
			expected := fmt.Sprintf(form, want)
			if kind == "text/plain" {
				expected = message
			}
			if err != nil || !bytes.Equal(got, []byte(expected)) {
				t.Errorf("%s: %s, %v", kind, got, err)
			}
		}
	}
}

// The failure of such a call has the code of an output that cannot be recorded.
func TestResultThatWouldChangeFailsTheCall(t *testing.T) {
	t.Parallel()
	failure := (&server{}).explain(t.Context(), nil, &jsonrpc.Error{Code: unkept, Message: `invalid value at "/content/0/text"`})
	if failure.Code != string(problem.ActivityOutputInvalid) || failure.Retryable != activities.RetryUnknown || !strings.Contains(failure.Error(), "/content") {
		t.Errorf("%+v", failure)
	}
}
