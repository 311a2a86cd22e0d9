package sdnotify_test

import (
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/sdnotify"
)

// environment is a lookup in a map.
func environment(m map[string]string) func(string) string {
	return func(name string) string { return m[name] }
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		want time.Duration
	}{
		"none":         {nil, 0},
		"no manager":   {map[string]string{"WATCHDOG_USEC": "1000"}, 0},
		"asked for":    {map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "2000000"}, 2 * time.Second},
		"for this one": {map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"}, 2 * time.Second},
		"for another":  {map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "8"}, 0},
		"no number":    {map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, 0},
		"not positive": {map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "-1"}, 0},
		"beyond what a duration holds": {
			map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "9223372036854775807"}, math.MaxInt64 / 1000 * 1000,
		},
		"without usecs": {map[string]string{"NOTIFY_SOCKET": "/x"}, 0},
	} {
		if got := sdnotify.New(environment(c.env), 7).Watchdog; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	// The names of sockets are short, and those of a test's own folder need not be.
	folder, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skip("no Unix datagram socket, which systemd talks through, can be made here: ", err)
	}
	defer socket.Close()
	n := sdnotify.New(environment(map[string]string{"NOTIFY_SOCKET": path}), 7)
	for _, send := range []func() error{func() error { return n.Ready("a\nREADY=0 b") }, n.Alive, n.Stopping} {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"READY=1\nSTATUS=a READY=0 b", "WATCHDOG=1", "STOPPING=1"} {
		text := make([]byte, 100)
		length, err := socket.Read(text)
		if err != nil || string(text[:length]) != want {
			t.Errorf("got %q, %v; want %q", text[:length], err, want)
		}
	}
}

func TestNobodyToTell(t *testing.T) {
	t.Parallel()
	if err := (sdnotify.Notifier{}).Ready("x"); err != nil {
		t.Error(err)
	}
	gone := sdnotify.New(environment(map[string]string{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "none")}), 7)
	if err := gone.Alive(); err == nil {
		t.Error("a socket that does not exist took the message")
	}
}
