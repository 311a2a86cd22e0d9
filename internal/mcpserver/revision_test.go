package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// TestAnswersByRevision: older clients get no members about caching, and their code for a missing resource.
func TestAnswersByRevision(t *testing.T) {
	t.Parallel()
	for revision, old := range map[string]bool{"2025-03-26": true, "2025-11-25": true, "2026-07-28": false} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t)
				meta := ""
				if old {
					w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`, revision))
				} else {
					meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}`
				}
				ask := func(id int, method, params string) string {
					if params != "" && meta != "" {
						params += ","
					}
					return strings.Join(w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, method, params, meta)), "")
				}
				for i, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
					answer := ask(i+1, method, "")
					if cached := contains(answer, `"ttlMs"`) && contains(answer, `"cacheScope"`); cached == old || !contains(answer, `"result"`) {
						t.Errorf("%s: %.300s", method, answer)
					}
				}
				code := `"code":-32602`
				if old {
					code = `"code":-32002`
				}
				if answer := ask(7, "resources/read", `"uri":"awp://runs/nobody/state"`); !contains(answer, code) {
					t.Errorf("%.300s", answer)
				}
			})
		})
	}
}
