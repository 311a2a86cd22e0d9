package page

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// listening serves a page at a port of its own, and returns its address.
func listening(t *testing.T, change func(*Options)) (a Address, server *httptest.Server) {
	t.Helper()
	server = httptest.NewUnstartedServer(nil)
	server.Listener.Close()
	server.Listener = enginetest.Must(net.Listen("tcp", "127.0.0.1:0"))
	b := browse(t, func(o *Options) {
		o.Origin = Address{Host: "w1.localhost", Port: server.Listener.Addr().(*net.TCPAddr).Port}.Origin()
		change(o)
	})
	server.Config.Handler = b.page
	server.Start()
	t.Cleanup(server.Close)
	return b.page.o.Address(server.Listener.Addr()), server
}

// TestAddressesOfPages: others find the pages of a database while these run, the newest first, and nothing else that listens where one was.
func TestAddressesOfPages(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "runs.db.page")
	check := func(when string, want ...Address) {
		t.Helper()
		var got []string
		for a := range Running(t.Context(), file) {
			got = append(got, a.Origin())
		}
		origins, first := []string{}, ""
		for _, a := range want {
			origins = append(origins, a.Origin())
		}
		if strings.Join(got, " ") != strings.Join(origins, " ") {
			t.Errorf("%s: %q run, want %q", when, got, origins)
		}
		if len(origins) > 0 {
			first = origins[0]
		}
		if got := RunningOrigin(t.Context(), file); got != first {
			t.Errorf("%s: %q is the origin, want %q", when, got, first)
		}
	}
	announce := func(a Address, home *Home) (withdraw func()) {
		t.Helper()
		withdraw, err := Announce(file, a, home)
		if err != nil {
			t.Fatal(err)
		}
		return withdraw
	}
	kept := func() (f addressFile) {
		t.Helper()
		if err := json.Unmarshal(enginetest.Must(os.ReadFile(file)), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	check("without a file")
	home := ReadHome(file)
	if !strings.HasSuffix(home.Name, ".localhost") {
		t.Errorf("the name is %q", home.Name)
	}
	ui, _ := listening(t, func(*Options) {})
	home.Port = ui.Port
	withdraw := announce(ui, &home)
	check("one page", ui)
	if ui.Host != "w1.localhost" || ui.Key == (Key{}) {
		t.Errorf("the address of ui is %v", ui)
	}
	tokens := httpguard.OneToken(writerToken, "kim")
	served, server := listening(t, func(o *Options) { o.Access = &httpguard.Access{Hosts: []string{"flows.example.com"}, Tokens: tokens} })
	end := announce(served, nil)
	check("two pages", served, ui)
	if served.Host != "127.0.0.1" || served.Key != (Key{}) {
		t.Errorf("the address of a page with tokens is %v", served)
	}
	if text := string(enginetest.Must(os.ReadFile(file))); strings.Contains(text, writerToken) {
		t.Errorf("a token is in %s", text)
	}
	other, _ := listening(t, func(o *Options) { o.ReadOnly = true })
	endOther := announce(other, &Home{Name: home.Name, Port: other.Port})
	check("a second page of ui", other, served, ui)
	if got := ReadHome(file); got != home || !other.ReadOnly || !other.UI || served.UI {
		t.Errorf("the home is %v beside the first page, was %v", got, home)
	}
	endOther()
	withdraw()
	check("after the end of the first", served)
	if got := ReadHome(file); got != home {
		t.Errorf("the home is %v, was %v", got, home)
	}
	withdraw = announce(ui, nil)
	check("and again", ui, served)

	server.Close() // killed: its address stays
	check("after a kill", ui)
	stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	stranger.Listener.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(served.Port))
	if err == nil { // no other program was faster
		stranger.Listener = listener
		stranger.Start()
		check("with another server at the port", ui)
		stranger.Close()
	}
	third, _ := listening(t, func(o *Options) { o.Access = &httpguard.Access{Hosts: []string{"flows.localhost"}} })
	announce(third, nil)
	check("a third page", third, ui)
	if third.Host != "flows.localhost" || third.Key == (Key{}) {
		t.Errorf("the address of a page without tokens is %v", third)
	}
	if listener != nil {
		if pages := kept().Pages; len(pages) != 2 {
			t.Errorf("the address of the dead page is kept: %v", pages)
		}
	}
	end()
	withdraw()
	check("after the end of the second", third)

	for name, foreign := range map[string]Address{
		"name": {Host: "example.com", Port: third.Port, Proof: third.Proof}, "address": {Host: "192.0.2.1", Port: third.Port, Proof: third.Proof},
		"proof": {Host: third.Host, Port: third.Port, Proof: NewKey()},
	} {
		announce(foreign, nil)
		for a := range Running(t.Context(), file) {
			if a == foreign {
				t.Errorf("%s: a foreign page is linked to", name)
			}
		}
	}
	for range 2 * maxAddresses {
		announce(Address{Host: "192.0.2.1", Port: len(kept().Pages)}, nil)
	}
	if n := len(kept().Pages); n > maxAddresses {
		t.Errorf("%d addresses", n)
	}
	for _, text := range []string{"", "x", `{"name":"example.com","port":1}`, `{"pages":[{"host":"localhost","port":1,"proof":"x"}]}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check("with the file " + text)
		if home := ReadHome(file); home.Name == "example.com" || home.Name == "" || home.Port != 0 {
			t.Errorf("%q: the home is %v", text, home)
		}
		defer announce(third, nil)()
		check("after it", third)
	}
	if withdraw, err := Announce("", third, nil); err != nil {
		t.Errorf("without a file: %v", err)
	} else {
		withdraw()
	}
}

// TestAddressOfAListener: the address of a page is the one at which this machine reaches it.
func TestAddressOfAListener(t *testing.T) {
	t.Parallel()
	for listens, want := range map[string]string{
		"127.0.0.1:8772": "http://flows.localhost:8772", "0.0.0.0:8772": "http://flows.localhost:8772", "[::]:8772": "http://flows.localhost:8772",
		"[::1]:8772": "http://[::1]:8772", "192.0.2.7:8772": "http://192.0.2.7:8772",
	} {
		o := Options{Key: NewKey(), Access: &httpguard.Access{Hosts: []string{"flows.example.com", "flows.localhost"}}}
		if got := o.Address(addr(listens)).Origin(); got != want {
			t.Errorf("%s: %s, want %s", listens, got, want)
		}
	}
}
