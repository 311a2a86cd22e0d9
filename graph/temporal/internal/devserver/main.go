// Command devserver runs a Temporal server for tests in one process, with its database in memory, on a loopback port that the system chooses. It
// prints the address and the namespace, and stops when its standard input is closed.
//
// It is a module of its own, because the server and the adapter need different versions of the SDK.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/temporaltest"
)

// attributes are the search attributes of runs; see temporal.SearchAttributes of the adapter.
var attributes = map[string]enums.IndexedValueType{
	"AwpPhase":      enums.INDEXED_VALUE_TYPE_KEYWORD,
	"AwpDefinition": enums.INDEXED_VALUE_TYPE_KEYWORD,
	"AwpHash":       enums.INDEXED_VALUE_TYPE_KEYWORD,
	"AwpParent":     enums.INDEXED_VALUE_TYPE_KEYWORD,
	"AwpLabels":     enums.INDEXED_VALUE_TYPE_KEYWORD_LIST,
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "devserver:", err)
		os.Exit(1)
	}
}

func serve() error {
	s := temporaltest.NewServer()
	defer s.Stop()
	c, err := client.Dial(client.Options{HostPort: s.GetFrontendHostPort(), Namespace: s.GetDefaultNamespace(), Logger: silent{}})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		SearchAttributes: attributes, Namespace: s.GetDefaultNamespace(),
	})
	if err != nil {
		return err
	}
	fmt.Println(s.GetFrontendHostPort(), s.GetDefaultNamespace())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// silent is a logger that discards everything.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
