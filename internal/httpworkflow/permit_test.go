package httpworkflow_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpworkflow"
)

// Nothing is asked that does not begin with what is allowed, however it is written.
func TestOnlyWhatIsAllowedIsAsked(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text("1")) })
	r := open(t, httpworkflow.Config{Allow: []string{s.URL + "/flows/", s.URL + "/one"}, PrivateNetworks: loopback})
	for _, path := range []string{"/flows", "/flows/", "/flows/a", "/flows/a/b", "/one", "/one/x"} {
		resolve(t, r, s.URL+path, "", "1")
	}
	asked := s.count()
	host := strings.TrimPrefix(s.URL, "http://")
	for _, ref := range []string{
		s.URL, s.URL + "/", s.URL + "/flows2", s.URL + "/Flows/a", s.URL + "/onex",
		s.URL + "/flows/../secret", s.URL + "/flows/%2e%2e/secret", s.URL + "/flows/..%2fsecret", s.URL + "/flows/..%5Csecret",
		s.URL + "/flows/..;/secret", s.URL + "/flows/.;/a", s.URL + "/flows/%2e%2e;x/secret", s.URL + "/flows/%252e%252e/secret",
		s.URL + "/flows//a", s.URL + "/flows/./a", s.URL + `/flows/\a`,
		"https://" + host + "/flows/a", "http://user:pass@" + host + "/flows/a", "http://" + host + "@elsewhere.example/flows/a",
		"http://127.0.0.1:1/flows/a", "http:///flows/a", "http://" + host + ".elsewhere.example/flows/a", "file:///etc/passwd",
		"ftp://" + host + "/flows/a", "http://[", "",
	} {
		_, err := r.ResolveWorkflow(t.Context(), ref, "")
		if !errors.Is(err, problem.WorkflowNotFound) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if n := s.count(); n != asked {
		t.Errorf("asked %d times for what is not allowed", n-asked)
	}
	nothing := open(t, httpworkflow.Config{PrivateNetworks: loopback})
	refuse(t, nothing, s.URL+"/flows/a", problem.WorkflowNotFound, "no allowed address")
}

// A redirect has to stay within what is allowed as well.
func TestRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text("1")) })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
	})
	r := trusting(t, s)
	for _, to := range []string{other.URL + "/x", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "https://localhost/x"} {
		refuse(t, r, s.URL+"/?to="+to, problem.WorkflowNotFound, "")
	}
	if n := other.count(); n != 0 {
		t.Errorf("the other server was asked %d times", n)
	}
	// What is allowed as an address may still not be dialled.
	r = open(t, httpworkflow.Config{Allow: []string{s.URL, "http://169.254.169.254", "http://10.0.0.1"}, PrivateNetworks: loopback})
	refuse(t, r, s.URL+"/?to=http://169.254.169.254/x", problem.WorkflowNotFound, "169.254.169.254 is not a public address")
	refuse(t, r, s.URL+"/?to=http://10.0.0.1/x", problem.WorkflowNotFound, "10.0.0.1 is not a public address")
	r = open(t, httpworkflow.Config{Allow: []string{s.URL, other.URL}, PrivateNetworks: loopback})
	resolve(t, r, s.URL+"/?to="+other.URL, "", "1")
}

// A run records the refusal: it shows neither a password nor the address that a redirect has led to.
func TestRefusalsShowNoSecret(t *testing.T) {
	t.Parallel()
	gone := serve(t, nil)
	gone.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, gone.URL+"/x?signature=hidden", http.StatusFound)
	})
	r := open(t, httpworkflow.Config{Allow: []string{s.URL, gone.URL}, PrivateNetworks: loopback})
	for _, ref := range []string{s.URL + "/x", strings.Replace(s.URL, "http://", "http://me:hidden@", 1) + "/x"} {
		_, err := r.ResolveWorkflow(t.Context(), ref, "")
		if !errors.Is(err, problem.WorkflowNotFound) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v", err)
		}
	}
}

// The check is of the address that is dialled: a public name that resolves to a special address is of no use.
func TestSpecialAddressesAreNotDialled(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text("1")) })
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	byName := "http://localhost:" + port
	for _, address := range []string{
		s.URL, byName, "http://[::1]:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://0.0.0.0:" + port, "http://[::]:" + port,
		"http://10.1.2.3", "http://172.16.0.1", "http://192.168.1.1", "http://169.254.169.254", "http://100.64.0.1", "http://224.0.0.1",
		"http://255.255.255.255", "http://[fe80::1]", "http://[fd00::1]", "http://[64:ff9b::7f00:1]", "http://[2002:7f00:1::]", "http://[::127.0.0.1]",
		"http://[::ffff:0:7f00:1]", "http://[64:ff9b:1::7f00:1]", "http://[5f00::1]", "http://[fec0::1]", "http://[3fff::1]", "http://[2001:db8::1]",
	} {
		refuse(t, open(t, httpworkflow.Config{Allow: []string{address}}), address+"/x", problem.WorkflowNotFound, "is not a public address")
	}
	if n := s.count(); n != 0 {
		t.Errorf("asked %d times", n)
	}
	resolve(t, open(t, httpworkflow.Config{Allow: []string{byName}, PrivateNetworks: loopback}), byName+"/x", "", "1")
	other := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	refuse(t, open(t, httpworkflow.Config{Allow: []string{s.URL}, PrivateNetworks: other}), s.URL, problem.WorkflowNotFound, "is not a public address")
}

func TestPrefixesAreChecked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "example.org", "//example.org", "ftp://example.org", "https://", "https://u@example.org", "https://example.org?q", "https://example.org/#f", "https://example.org/a/../b", "https://["} {
		if _, err := httpworkflow.New(httpworkflow.Config{Allow: []string{text}}); !errors.Is(err, problem.UsageError) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
