// Command descheduler is the descheduler as it is released, but that it asks the Prometheus of $PROMETHEUS_URL from its
// first round on. The released one builds this client with the token and the CA of a pod, which there are none of here.
package main

import (
	"context"
	"os"

	promapi "github.com/prometheus/client_golang/api"
	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"sigs.k8s.io/descheduler/cmd/descheduler/app"
	"sigs.k8s.io/descheduler/cmd/descheduler/app/options"
	"sigs.k8s.io/descheduler/pkg/descheduler"
)

func main() {
	server, err := options.NewDeschedulerServer()
	if err != nil {
		klog.Fatal(err)
	}
	logging := logsapi.NewLoggingConfiguration()
	server.AddFlags(pflag.CommandLine)
	logsapi.AddFlags(logging, pflag.CommandLine)
	pflag.Parse()
	logs.InitLogs()
	if err := logsapi.ValidateAndApply(logging, nil); err != nil {
		klog.Fatal(err)
	}
	descheduler.SetupPlugins()
	if err := server.Apply(); err != nil {
		klog.Fatal(err)
	}
	if url := os.Getenv("PROMETHEUS_URL"); url != "" {
		if server.PrometheusClient, err = promapi.NewClient(promapi.Config{Address: url}); err != nil {
			klog.Fatal(err)
		}
	}
	if err := app.Run(context.Background(), server); err != nil {
		klog.Fatal(err)
	}
	logs.FlushLogs()
}
