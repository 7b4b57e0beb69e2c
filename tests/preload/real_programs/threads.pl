# Interpreter threads, shared data and forks in Perl. Each thread clones the interpreter, and its memory is freed by
# others. Prints only what must be the same each time. Open it with workload_perl_threads of
# real_workloads_languages.sh.
use strict;
use warnings;
use IO::Handle;
use POSIX ();
use threads;
use threads::shared;
use Thread::Queue;

my %shared : shared;
my @held = map { { id => $_, text => "text $_" x ($_ % 9), list => [1 .. $_ % 20] } } 1 .. 3000;
my $questions = Thread::Queue->new;
my $answers = Thread::Queue->new;

sub work {
  my ($seed) = @_;
  my %seen;
  for my $i (1 .. 3000) { push @{$seen{($i * $seed) % 997}}, "v$i" x ($i % 4); }
  my $text = join ' ', map { "$_=" . join(',', @{$seen{$_}}) } sort { $a <=> $b } keys %seen;
  (my $turned = $text) =~ s/(\d)(\d)/$2$1/g;
  return join ' ', $seed, scalar(keys %seen), length($turned), unpack('%32C*', $turned);
}

my @workers = map {
  threads->create(sub {
    while (defined(my $seed = $questions->dequeue)) {
      $answers->enqueue(work($seed));
      lock %shared;
      $shared{"k" . $seed % 7} .= 'x' x ($seed % 5);
      $held[$seed]{text} = "own $seed";
    }
    return scalar grep { ref $_ eq 'HASH' } @held;
  });
} 1 .. 4;
$questions->enqueue(1 .. 24);
$questions->end;
print $_->join, "\n" for @workers;
print "$_\n" for sort { ($a =~ /^(\d+)/)[0] <=> ($b =~ /^(\d+)/)[0] } map { $answers->dequeue } 1 .. 24;
print join(',', map { "$_:" . length $shared{$_} } sort keys %shared), "\n";
print "$held[5]{text} $held[24]{text}\n";

for my $round (1 .. 12) {
  my ($thread) = threads->create({ context => 'list' }, sub { map { "r$round" x $_ } 1 .. 40 });
  my @texts = $thread->join;
  print length join('', @texts), "\n";
}
my $busy = threads->create(sub { my $n = 0; $n += length work($_ % 50 + 1) for 1 .. 25; return $n; });
for my $seed (1 .. 8) {
  my $pid = open(my $child, '-|') // die "no fork: $!\n";
  if (!$pid) {
    print work($seed);
    STDOUT->flush;
    POSIX::_exit($seed);
  }
  my $answer = do { local $/; <$child> };
  close $child;
  print $? >> 8, ' ', $answer eq work($seed) ? 'same' : "different: $answer", "\n";
}
print $busy->join, "\n";
