package childprocess

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatAChildPrintsIsLoggedAtABoundedRate: so much, and so much again after a while, each time with a word about the rest.
func TestWhatAChildPrintsIsLoggedAtABoundedRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		tail := Tail{Allowance: Allowance{Bytes: 10, Window: time.Minute}, Line: func(line string) { lines = append(lines, line) }}
		chatter := strings.Repeat("123456\n", 1000)
		for range 2 {
			tail.readFrom(strings.NewReader(chatter))
			if want := []string{"123456", "123456", "… more is not logged for up to 1m0s"}; strings.Join(lines, "|") != strings.Join(want, "|") {
				t.Errorf("%d lines: %.100q", len(lines), lines)
			}
			lines = nil
			tail.readFrom(strings.NewReader(chatter))
			if len(lines) > 0 {
				t.Errorf("%d lines more", len(lines))
			}
			time.Sleep(time.Minute)
		}
		if got := tail.String(); len(got) < MaxTail-10 {
			t.Errorf("the end is %d bytes", len(got))
		}
	})
}
