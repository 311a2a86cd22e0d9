package toolcall

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/childprocess"
)

// What is logged and told of a line that is no message holds no part of a secret, wherever it is cut.
func TestStrayLineMasked(t *testing.T) {
	t.Parallel()
	const secret = "sentinel-4711"
	for _, before := range []int{0, childprocess.MaxLine - 5, 195} {
		var log bytes.Buffer
		m := &messages{log: slog.New(slog.NewTextHandler(&log, nil)), secret: childprocess.NewScrubber([]string{secret})}
		m.skip(strings.Repeat("x", before) + secret + strings.Repeat("y", childprocess.MaxLine))
		if all := log.String() + m.strayLine(); strings.Contains(all, "sent") || len(all) > 2*childprocess.MaxLine {
			t.Errorf("after %d bytes: %d bytes, %q", before, len(all), all[:100])
		}
	}
}
