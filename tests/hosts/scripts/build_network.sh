# build_network HOSTS HOSTS_PER_LEAF RAILS LINKS UPLINK MTU BURST AT_ONCE QUEUES: rates in bytes/s, LINKS one of each host, BURST in us
# at a rate. AT_ONCE: packets that pass a queue as one. QUEUES of a link, among which it divides its rate evenly: connections are dealt
# out to them by the other host, beyond 16 by their DSCP too (connection_numbers.cpp). The network namespace it runs in holds the bridges and is called "fabric" from now on; the hosts' are
# h0, h1, ...
set -e
hosts=$1 per_leaf=$2 rails=$3 links=$4 uplink=$5 mtu=$6 burst_us=$7 at_once=$8 queues=$9
source=12 destination=16
cores=$(nproc)
[ $cores -le 32 ] || cores=32
cores=$(printf %x $(((1 << cores) - 1)))

# Reno, as a namespace may choose no other; send buffers short enough that what a rank sends last is
# not held up by megabytes it sent before; no state kept from one connection or pause to the next. Links lose nothing, but cores that
# take turns at a queue may swap packets: TCP is not to take that for a loss, send again and slow down.
settle() {  # NAMESPACE
  ip netns exec $1 sh -e <<-end
	cd /proc/sys/net
	echo reno > ipv4/tcp_congestion_control
	echo 4096 16384 524288 > ipv4/tcp_wmem
	echo 0 > ipv4/tcp_slow_start_after_idle
	echo 1 > ipv4/tcp_no_metrics_save
	echo 300 > ipv4/tcp_reordering
	echo 0 > ipv4/tcp_recovery
	echo 0 > ipv4/tcp_early_retrans
	[ ! -d ipv6 ] || echo 1 > ipv6/conf/all/disable_ipv6
	[ ! -d ipv6 ] || echo 1 > ipv6/conf/default/disable_ipv6
	ip link set lo up
	end
}

bridge() {  # NAME
  ip link add $1 type bridge mcast_snooping 0
  ip link set $1 up
}

cable() {  # BRIDGE PORT NAMESPACE INTERFACE
  ip link add $2 mtu $mtu type veth peer name $4 netns $3 mtu $mtu
  ip link set $2 master $1 up
  ip -n $3 link set $4 up
  keep_order fabric $2
  keep_order $3 $4
}

# Packets of a connection are received by one core, whichever sent them, so that none overtakes another; where /sys may be written.
keep_order() {  # NAMESPACE INTERFACE
  ip netns exec $1 sh -c "cd /sys/class/net/$2/queues/rx-0 && if [ -w rps_cpus ]; then echo $cores > rps_cpus; fi"
}

shape() {  # NAMESPACE INTERFACE RATE PLACE_OF_ADDRESS: in the IP header of what it sends, the other host's
  burst=$(($3 * burst_us / 1000000))
  least=$((2 * at_once * (mtu + 14)))
  [ $burst -ge $least ] || burst=$least
  if [ $at_once -eq 1 ]; then
    ip netns exec $1 ethtool -K $2 tso off gso off gro off
  else
    ip -n $1 link set $2 gso_max_size $((at_once * mtu))
  fi
  default=1
  [ $queues -eq 1 ] || default=2
  tc -n $1 qdisc add dev $2 root handle 1: htb default $default
  tc -n $1 class add dev $2 parent 1: classid 1:1 htb rate $3bps burst $burst cburst $burst
  if [ $queues -eq 1 ]; then
    tc -n $1 qdisc add dev $2 parent 1:1 bfifo limit 256m
  else
    divided=/run/divided-$3-$4
    [ -e $divided ] || divide $3 $least $4 > $divided
    sed "s/INTERFACE/$2/" $divided | tc -n $1 -batch -
  fi
}

# By the last bits of the other host's address, then by those of the DSCP. Acknowledgements, packets of 52 bytes, go first: behind data
# they would hold up what they are for. No others do: a size that NCCL sends ahead of its data must not overtake what went before.
divide() {  # RATE LEAST_BURST PLACE_OF_ADDRESS: lines for tc, of any INTERFACE
  filter="filter add dev INTERFACE parent 1: protocol ip prio 1"
  queue() {  # CLASS RATE PRIORITY
    echo "class add dev INTERFACE parent 1:1 classid 1:$1 htb rate $(($2))bps ceil ${rate}bps prio $3 burst $least cburst $least quantum $least"
    echo "qdisc add dev INTERFACE parent 1:$1 bfifo limit 256m"
  }
  rate=$1 least=$2
  hosts_told=$queues numbers=1
  [ $queues -le 16 ] || { hosts_told=16; numbers=$((queues / 16)); }
  queue 2 "rate / 4" 0
  echo "$filter u32 match u16 52 0xffff at 2 classid 1:2"
  echo "$filter handle 10: u32 divisor $hosts_told"
  for h in $(below $hosts_told); do
    table=$(printf %x $((32 + h)))
    echo "$filter handle $table: u32 divisor $numbers"
    for n in $(below $numbers); do
      class=$(printf %x $((16 + h * numbers + n)))
      queue $class "rate / 2 / $queues" 1
      echo "$filter u32 ht $table:$(printf %x $n): match u32 0 0 classid 1:$class"
    done
    echo "$filter u32 ht 10:$(printf %x $h): match u32 0 0 hashkey mask $(printf 0x%08x $(((numbers - 1) << 18))) at 0 link $table:"
  done
  echo "$filter u32 ht 800:: match u32 0 0 hashkey mask $(printf 0x%08x $((hosts_told - 1))) at $3 link 10:"
}

address() {  # HOST INTERFACE NETWORK
  ip -n h$1 address add 10.$3.$(($1 / 250)).$(($1 % 250 + 1))/16 dev $2
}

host() {  # HOST
  ip netns add h$1
  settle h$1
  cable control h$1-control h$1 control
  address $1 control 64
}

leaf() {  # LEAF RAIL
  bridge leaf$1-rail$2
  [ $leaves -gt 1 ] || return 0
  cable root-rail$2 down$1-rail$2 fabric up$1-rail$2
  ip link set up$1-rail$2 master leaf$1-rail$2
  shape fabric down$1-rail$2 $uplink $source
  shape fabric up$1-rail$2 $uplink $destination
}

attach() {  # HOST RAIL
  cable leaf$(($1 / per_leaf))-rail$2 h$1-rail$2 h$1 rail$2
  address $1 rail$2 $((65 + $2))
  link=$(echo $links | cut -d' ' -f$(($1 + 1)))
  shape fabric h$1-rail$2 $link $source
  shape h$1 rail$2 $link $destination
}

below() { seq 0 $(($1 - 1)); }

ip netns attach fabric $$
settle fabric
bridge control
ip address add 10.64.255.254/16 dev control
leaves=$(((hosts + per_leaf - 1) / per_leaf))
for h in $(below $hosts); do host $h; done
for r in $(below $rails); do
  [ $leaves -eq 1 ] || bridge root-rail$r
  for l in $(below $leaves); do leaf $l $r; done
  for h in $(below $hosts); do attach $h $r; done
done
