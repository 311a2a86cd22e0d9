package apicall_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/apicall"
)

// An agent with an API that takes a key in a header. Custom schemes are functions of type apicall.Auth.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"path": %q, "key": %q}`, r.URL.Path, r.Header.Get("X-Api-Key"))
	}))
	defer service.Close()
	key := func(context.Context) (string, error) { // read at each call
		if v, ok := os.LookupEnv("WIDGETS_KEY"); ok {
			return v, nil
		}
		return "the-key-of-the-widgets", nil
	}
	apis, err := apicall.New(apicall.Config{
		Services: map[string]apicall.Service{
			"widgets": {BaseURL: service.URL + "/v1", Auth: apicall.Header("X-Api-Key", key), AllowedPaths: []string{"^/widgets(/[0-9]+)?$"}},
		},
		Observe: func(r apicall.Report) { fmt.Println(r.Service, r.Method, r.Path, r.Status, r.BytesIn) },
	})
	check(err)
	defer apis.Close()
	tools, err := apis.Tools([]string{"widgets"}, agent.WithGate(agent.Ask))
	check(err)
	_ = agent.Agent{Tools: []agent.Toolset{tools}}

	result, err := tools.Call(context.Background(), agent.Call{Name: apicall.Name, Arguments: map[string]any{"service": "widgets", "method": "GET", "path": "/widgets/7"}})
	check(err)
	fmt.Println(result.(map[string]any)["body"])
	_, err = tools.Call(context.Background(), agent.Call{Name: apicall.Name, Arguments: map[string]any{"service": "widgets", "method": "GET", "path": "/admin"}})
	fmt.Println(err)
	// Output:
	// widgets GET /widgets/7 200 58
	// map[key:[REDACTED] path:/v1/widgets/7]
	// service "widgets" takes paths that match ^/widgets(/[0-9]+)?$
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
