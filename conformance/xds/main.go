// A control plane made of go-control-plane, whose endpoints change all the time: a peer for
// `weir discover xds`, and the backends of its lists.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var (
	listen   = flag.String("listen", "127.0.0.1:18000", "address of the control plane")
	backends = flag.String("backends", "", "addresses to serve HTTP at, separated by commas")
	targets  = flag.String("targets", "", "addresses to put into lists, separated by commas")
	every    = flag.Duration("every", 100*time.Millisecond, "time between changes; 0: none")
	clusters = flag.Int("clusters", 1, "clusters: app, app1, app2 ...")
	size     = flag.Int("size", 0, "endpoints of a cluster; 0: at random")
	ads      = flag.Bool("ads", true, "ordered snapshots, as control planes of Envoy have them")
	broken   = flag.Duration("broken", 0, "time after which a response is wrong for a second")
	age      = flag.Duration("age", 0, "age at which connections are ended with GOAWAY")
	cert     = flag.String("cert", "", "certificate")
	key      = flag.String("key", "", "its key")
	clientCA = flag.String("client-ca", "", "who signs the certificates of clients")
)

// Every node has the same snapshot.
type hash struct{}

func (hash) ID(*core.Node) string { return "all" }

func address(text string) *core.Address {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		log.Fatal(err)
	}
	var number uint32
	fmt.Sscan(port, &number)
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: number}}}}
}

func assignment(name string, addresses []string, isWrong bool) *endpoint.ClusterLoadAssignment {
	var list []*endpoint.LbEndpoint
	for index, text := range addresses {
		one := &endpoint.LbEndpoint{
			HostIdentifier: &endpoint.LbEndpoint_Endpoint{
				Endpoint: &endpoint.Endpoint{Address: address(text)}},
			LoadBalancingWeight: wrapperspb.UInt32(uint32(1 + index%3)),
		}
		if isWrong {
			one.GetEndpoint().Address.GetSocketAddress().Address = "no address"
		}
		list = append(list, one)
	}
	return &endpoint.ClusterLoadAssignment{ClusterName: name,
		Endpoints: []*endpoint.LocalityLbEndpoints{{LbEndpoints: list,
			Locality: &core.Locality{Region: "r", Zone: "z"}}}}
}

func snapshot(version string, addresses []string, isWrong bool) *cache.Snapshot {
	var all, endpoints []types.Resource
	for index := 0; index < *clusters; index++ {
		name := "app"
		if index > 0 {
			name = fmt.Sprintf("app%d", index)
		}
		source := &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3,
			ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}
		all = append(all, &cluster.Cluster{Name: name,
			ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
			EdsClusterConfig: &cluster.Cluster_EdsClusterConfig{
				EdsConfig: source, ServiceName: "of-" + name}})
		count := *size
		if count == 0 {
			count = 1 + rand.Intn(len(addresses))
		}
		var chosen []string
		first := rand.Intn(len(addresses))
		for at := 0; at < count; at++ {
			chosen = append(chosen, addresses[(first+at)%len(addresses)])
		}
		endpoints = append(endpoints, assignment("of-"+name, chosen, isWrong && index == 0))
	}
	made, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{
		resource.ClusterType: all, resource.EndpointType: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	return made
}

var acks, nacks atomic.Int64

func count(nonce string, why interface{ GetMessage() string }, hasError bool) {
	switch {
	case hasError:
		nacks.Add(1)
		log.Printf("NACK: %s", why.GetMessage())
	case nonce != "":
		acks.Add(1)
	}
}

func options() []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: *age,
			MaxConnectionAgeGrace: time.Second}),
	}
	if *cert == "" {
		return options
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if *clientCA != "" {
		pem, err := os.ReadFile(*clientCA)
		if err != nil {
			log.Fatal(err)
		}
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(pem)
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return append(options, grpc.Creds(credentials.NewTLS(config)))
}

func main() {
	flag.Parse()
	for _, text := range strings.Split(*backends, ",") {
		if text == "" {
			continue
		}
		listener, err := net.Listen("tcp", text)
		if err != nil {
			log.Fatal(err)
		}
		go http.Serve(listener, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(out, text)
		}))
	}
	if *targets == "" {
		select {}
	}
	addresses := strings.Split(*targets, ",")
	snapshots := cache.NewSnapshotCache(*ads, hash{}, nil)
	start, changes := time.Now(), 0
	run := fmt.Sprint(start.UnixNano())
	change := func() {
		changes++
		since := time.Since(start)
		isWrong := *broken > 0 && since > *broken && since < *broken+time.Second
		err := snapshots.SetSnapshot(context.Background(), "all",
			snapshot(fmt.Sprint(run, "-", changes), addresses, isWrong))
		if err != nil {
			log.Print(err)
		}
	}
	change()
	callbacks := server.CallbackFuncs{
		StreamOpenFunc: func(_ context.Context, _ int64, kind string) error {
			log.Printf("a stream of the state of the world: %q", kind)
			return nil
		},
		DeltaStreamOpenFunc: func(_ context.Context, _ int64, kind string) error {
			log.Printf("a stream of changes: %q", kind)
			return nil
		},
		StreamRequestFunc: func(_ int64, request *discovery.DiscoveryRequest) error {
			count(request.ResponseNonce, request.ErrorDetail, request.ErrorDetail != nil)
			return nil
		},
		StreamDeltaRequestFunc: func(_ int64, request *discovery.DeltaDiscoveryRequest) error {
			count(request.ResponseNonce, request.ErrorDetail, request.ErrorDetail != nil)
			return nil
		},
	}
	rpc := grpc.NewServer(options()...)
	discovery.RegisterAggregatedDiscoveryServiceServer(rpc,
		server.NewServer(context.Background(), snapshots, callbacks))
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	if *every > 0 {
		go func() {
			for range time.Tick(*every) {
				change()
			}
		}()
	}
	go func() {
		for range time.Tick(10 * time.Second) {
			log.Printf("%d changes, %d ACKs, %d NACKs", changes, acks.Load(), nacks.Load())
		}
	}()
	log.Fatal(rpc.Serve(listener))
}
