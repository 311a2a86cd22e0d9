package chat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	const sentinel = "sentinel-key-0123456789"
	s := chat.NewSecret(" " + sentinel + " ")
	if s.Reveal() != sentinel {
		t.Errorf("revealed %q", s.Reveal())
	}
	inside := struct {
		Key  chat.Secret
		Keys map[string]*chat.Secret
	}{s, map[string]*chat.Secret{"k": &s}}
	var printed strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		fmt.Fprintf(&printed, verb+" "+verb+"\n", s, inside)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "key", s, "inside", inside)
	}
	encoded, err := json.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	all := printed.String() + log.String() + string(encoded) + s.String() + s.GoString()
	if strings.Contains(all, "sentinel") || strings.Contains(all, fmt.Sprintf("%x", sentinel)) {
		t.Errorf("printed:\n%s", all)
	}
	if !strings.Contains(string(encoded), `"Key":"[secret]"`) {
		t.Errorf("encoded %s", encoded)
	}
}
